// SPDX-License-Identifier: Apache-2.0
#include "text/thought_grammar.h"

#include "text/lark_text.h"

namespace tessera::text {

std::string ThoughtGrammar(const ReasoningSyntax& syntax, bool starts_reasoning, GrammarKind kind,
                           std::string_view source, const Tokenizer& tokenizer) {
  LarkText lark(tokenizer);
  const std::string thoughts = lark.Thoughts(syntax, starts_reasoning);
  return lark.Source(thoughts + lark.Form(kind, source));
}

}  // namespace tessera::text
