// SPDX-License-Identifier: Apache-2.0
//
// Reads the text form (print.h). Grammar, `#` starts a comment that ends with the line:
//   file      = "graph" STRING { table } { node }
//   table     = "rope_table" INT { KEY "=" VALUE }
//   node      = "%" INT "=" OP [ STRING ] [ "(" [ value { "," value } ] ")" ]
//               [ "{" [ KEY "=" VALUE { "," KEY "=" VALUE } ] "}" ] ":" TYPE [ "@" LABEL ]
// Node and table numbers count from 0 without gaps.
#pragma once

#include <string_view>

#include "graph/ir.h"

namespace tessera::graph {

/// A verified graph. kInvalidArgument "line 7: ...: expected ..." for anything else,
/// kResourceExhausted past limits.h.
Result<Graph> ParseGraph(std::string_view text);

}  // namespace tessera::graph
