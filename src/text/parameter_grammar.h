// SPDX-License-Identifier: Apache-2.0
//
// The part of a tool grammar that is peculiar to syntaxes of single parameters
// (<parameter=city>\nParis\n</parameter>): their values stand bare, so that a schema of an object
// is enforced property by property, in the schema's order.
#pragma once

#include <string>

#include "base/status.h"
#include "text/lark_text.h"
#include "text/tool_grammar.h"

namespace tessera::text {

/// Terms of the arguments of `tool`'s calls. kUnimplemented with a JSON pointer for a keyword that
/// cannot be enforced on bare text.
Result<std::string> ParameterTerms(const ToolSyntax& syntax, const ToolSchema& tool,
                                   LarkText* lark);

}  // namespace tessera::text
