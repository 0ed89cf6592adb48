// SPDX-License-Identifier: Apache-2.0
//
// ThoughtGrammar: the form of an answer that has thoughts in front of a text which has a form of
// its own. Pure function.
#pragma once

#include <string>
#include <string_view>

#include "text/grammar.h"
#include "text/reasoning_parser.h"
#include "text/tokenizer.h"

namespace tessera::text {

/// Text for Grammar::Compile, kind kLarkParts. `kind` (not kLarkParts) and `source` are the text's
/// form; `starts_reasoning`: the answer begins within the thoughts.
std::string ThoughtGrammar(const ReasoningSyntax& syntax, bool starts_reasoning, GrammarKind kind,
                           std::string_view source, const Tokenizer& tokenizer);

}  // namespace tessera::text
