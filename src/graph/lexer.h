// SPDX-License-Identifier: Apache-2.0
//
// Splits the text form into tokens. An atom is a run of [A-Za-z0-9_.+-]: op names, keys, labels and
// numbers alike; the parser knows from the place which it is. Views point into the text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tessera::graph {

class Lexer {
 public:
  enum class Kind : uint8_t { kEnd, kAtom, kString, kPunctuation };

  explicit Lexer(std::string_view text) : text_(text) {}

  /// Reads the first token; call once before any other.
  Status Start() { return Next(); }

  Kind kind() const { return kind_; }
  bool at_end() const { return kind_ == Kind::kEnd; }
  bool IsAtom(std::string_view word) const { return kind_ == Kind::kAtom && token_ == word; }
  bool IsPunctuation(char c) const { return kind_ == Kind::kPunctuation && token_[0] == c; }

  // Each takes the current token or says "line 7: expected X, got Y".
  Result<std::string_view> TakeAtom(std::string_view what);
  Result<std::string> TakeString(std::string_view what);
  Result<int64_t> TakeInt(std::string_view what);
  Result<double> TakeDouble(std::string_view what);
  Status TakePunctuation(char c);
  Status TakeWord(std::string_view word);

  /// An error at the current token.
  Status Error(std::string_view message) const;

 private:
  Status Next();
  Status LexString();
  Status Unexpected(std::string_view what) const;

  std::string_view text_;
  size_t at_ = 0;     // First byte after the token.
  int64_t line_ = 1;  // Of the token.
  Kind kind_ = Kind::kEnd;
  std::string_view token_;
  std::string string_;  // Of a kString, unescaped.
};

}  // namespace tessera::graph
