// SPDX-License-Identifier: Apache-2.0
//
// The type rules of the ops, in one place: builder, parser and verifier all ask here.
#pragma once

#include "graph/ir.h"

namespace tessera::graph {

/// The type of `node`, whose inputs must be earlier nodes of `graph`. Checks arity, input types,
/// the kind and ranges of attributes. The type of a parameter is declared, not inferred: it is
/// checked and returned. kInvalidArgument says what was expected, without naming the node.
Result<ValueType> InferType(const Graph& graph, const Node& node);

/// Whether a rope table is usable by itself.
Status CheckRopeTable(const RopeTable& table);

}  // namespace tessera::graph
