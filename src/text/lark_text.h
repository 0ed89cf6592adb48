// SPDX-License-Identifier: Apache-2.0
//
// LarkText: writes the pieces of a Lark grammar for a model: literals in which special tokens are
// tokens and not letters, text up to a mark, JSON that obeys a schema. For tool_grammar.cc and its
// parts.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "text/grammar.h"
#include "text/reasoning_parser.h"
#include "text/tokenizer.h"

namespace tessera::text {

class LarkText {
 public:
  explicit LarkText(const Tokenizer& tokenizer);

  /// `text` as terms of a rule.
  std::string Literal(std::string_view text) const;
  /// Any text, perhaps none, up to and with `mark`, that does not begin with white space and
  /// `not_first` (empty: any): the name of a rule for it.
  std::string TextUpTo(std::string_view mark, std::string_view not_first = {});
  /// `begin`, any text, `end`: terms.
  std::string TextBetween(std::string_view begin, std::string_view end);
  /// Text of at least `min` and at most `max` characters (max < 0: any number) that does not hold
  /// `mark`, up to and with `mark`.
  std::string BoundedTextUpTo(std::string_view mark, int64_t min, int64_t max);
  /// Text, at least a byte of it, without `mark`, beginning as TextUpTo: the name of a terminal.
  std::string TextWithout(std::string_view mark, std::string_view not_first = {});
  /// Adds `name: body`.
  void Rule(std::string_view name, std::string_view body);
  /// A name that no rule has.
  std::string FreshName(std::string_view stem);
  /// Terms for JSON that obeys `schema`, null for any object, written on one line.
  std::string Json(const json::Value& schema);
  /// Terms for text of a form of its own, as Grammar::Compile takes it; not kLarkParts.
  std::string Form(GrammarKind kind, std::string_view source);
  /// Terms for thoughts and the white space behind them, before an answer: they have to be there
  /// when the answer begins within them (`is_open`) or the syntax says so, else they may.
  std::string Thoughts(const ReasoningSyntax& syntax, bool is_open);
  /// All rules and the one that everything begins with, as GrammarKind::kLarkParts takes it.
  std::string Source(std::string_view start) const;

 private:
  std::string Lazy(const std::string& terminal);
  bool HasSpecial(std::string_view text) const;
  /// What takes those texts out of a terminal that begin with white space and `first`.
  std::string NotFirst(std::string_view first) const;
  /// Terms for a part that is no Lark.
  std::string Add(json::Value part);

  std::vector<std::pair<std::string, TokenId>> specials_;  // Longest first.
  json::Array forms_;                                      // Parts of the grammar.
  std::string rules_;
  size_t count_ = 0;
};

}  // namespace tessera::text
