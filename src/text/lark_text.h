// SPDX-License-Identifier: Apache-2.0
//
// LarkText: writes the pieces of a Lark grammar for a model: literals in which special tokens are
// tokens and not letters, text up to a mark. For tool_grammar.cc and its parts.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer.h"

namespace tessera::text {

class LarkText {
 public:
  explicit LarkText(const Tokenizer& tokenizer);

  /// `text` as terms of a rule.
  std::string Literal(std::string_view text) const;
  /// Any text, perhaps none, up to and with `mark`: the name of a rule for it.
  std::string TextUpTo(std::string_view mark);
  /// As TextUpTo, of at least `min` and at most `max` characters (max < 0: any number).
  std::string BoundedTextUpTo(std::string_view mark, int64_t min, int64_t max);
  /// Text, at least a byte of it, without `mark`: the name of a terminal.
  std::string TextWithout(std::string_view mark);
  /// Adds `name: body`.
  void Rule(std::string_view name, std::string_view body);
  /// A name that no rule has.
  std::string FreshName(std::string_view stem);
  /// All rules.
  const std::string& rules() const { return rules_; }

 private:
  bool HasSpecial(std::string_view text) const;

  std::vector<std::pair<std::string, TokenId>> specials_;  // Longest first.
  std::string rules_;
  size_t count_ = 0;
};

}  // namespace tessera::text
