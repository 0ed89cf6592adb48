// SPDX-License-Identifier: Apache-2.0
//
// A Detokenizer that leaves special tokens out but for some: those that mark calls of functions and
// thoughts must reach the parsers, the others must not reach the user.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>

#include "text/reasoning_parser.h"
#include "text/tokenizer.h"
#include "text/tool_syntax.h"

namespace tessera::text {

/// Special tokens whose text is part of a mark of these. Either may be null.
std::set<TokenId> SpecialsIn(const Tokenizer& tokenizer, const ToolSyntax* tools,
                             const ReasoningSyntax* reasoning);

/// `whole` shows every special token; of those only `kept` are passed on to it.
std::unique_ptr<Detokenizer> KeepSpecials(std::unique_ptr<Detokenizer> whole,
                                          std::shared_ptr<const Tokenizer> tokenizer,
                                          std::set<TokenId> kept);

}  // namespace tessera::text
