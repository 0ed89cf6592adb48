// SPDX-License-Identifier: Apache-2.0
#include "graph/lexer.h"

#include <fmt/format.h>

#include <charconv>

namespace tessera::graph {
namespace {

bool IsAtomByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '+' || c == '-';
}

/// The whole of `text` as a number, or nothing.
template <class Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<char> ParseHexByte(std::string_view text) {
  uint8_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + 2) return std::nullopt;
  return static_cast<char>(value);
}

}  // namespace

Status Lexer::Error(std::string_view message) const {
  return InvalidArgument(fmt::format("line {}: {}", line_, message));
}

Status Lexer::Unexpected(std::string_view what) const {
  if (at_end()) return Error(fmt::format("expected {}, got the end of the text", what));
  constexpr size_t kShown = 40;
  return Error(fmt::format("expected {}, got '{}'", what, token_.substr(0, kShown)));
}

Status Lexer::Next() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '#') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      line_ += c == '\n' ? 1 : 0;
      ++at_;
    } else {
      break;
    }
  }
  const size_t begin = at_;
  if (at_ == text_.size()) {
    kind_ = Kind::kEnd;
    token_ = {};
    return {};
  }
  if (text_[at_] == '"') return LexString();
  if (IsAtomByte(text_[at_])) {
    while (at_ < text_.size() && IsAtomByte(text_[at_])) ++at_;
    kind_ = Kind::kAtom;
  } else {
    ++at_;
    kind_ = Kind::kPunctuation;
  }
  token_ = text_.substr(begin, at_ - begin);
  return {};
}

Status Lexer::LexString() {
  const size_t begin = at_++;
  string_.clear();
  while (at_ < text_.size() && text_[at_] != '"') {
    const char c = text_[at_];
    if (c < 0x20 || c > 0x7e) return Error("a string holds printable ASCII and \\xNN only");
    if (c != '\\') {
      string_ += c;
      ++at_;
      continue;
    }
    const char escaped = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (escaped == '"' || escaped == '\\') {
      string_ += escaped;
      at_ += 2;
    } else if (escaped == 'x' && at_ + 4 <= text_.size()) {
      const std::optional<char> byte = ParseHexByte(text_.substr(at_ + 2, 2));
      if (!byte) return Error("expected two hexadecimal digits after \\x");
      string_ += *byte;
      at_ += 4;
    } else {
      return Error("expected \\\", \\\\ or \\xNN after a backslash");
    }
  }
  if (at_ == text_.size()) return Error("a string without end");
  ++at_;
  kind_ = Kind::kString;
  token_ = text_.substr(begin, at_ - begin);
  return {};
}

Result<std::string_view> Lexer::TakeAtom(std::string_view what) {
  if (kind_ != Kind::kAtom) return Fail(Unexpected(what));
  const std::string_view atom = token_;
  TESSERA_RETURN_IF_ERROR(Next());
  return atom;
}

Result<std::string> Lexer::TakeString(std::string_view what) {
  if (kind_ != Kind::kString) return Fail(Unexpected(what));
  std::string text = std::move(string_);
  TESSERA_RETURN_IF_ERROR(Next());
  return text;
}

Result<int64_t> Lexer::TakeInt(std::string_view what) {
  const std::optional<int64_t> value =
      kind_ == Kind::kAtom ? ParseNumber<int64_t>(token_) : std::nullopt;
  if (!value) return Fail(Unexpected(fmt::format("{} (an integer)", what)));
  TESSERA_RETURN_IF_ERROR(Next());
  return *value;
}

Result<double> Lexer::TakeDouble(std::string_view what) {
  const std::optional<double> value =
      kind_ == Kind::kAtom ? ParseNumber<double>(token_) : std::nullopt;
  if (!value) return Fail(Unexpected(fmt::format("{} (a number)", what)));
  TESSERA_RETURN_IF_ERROR(Next());
  return *value;
}

Status Lexer::TakePunctuation(char c) {
  if (!IsPunctuation(c)) return Unexpected(fmt::format("'{}'", c));
  return Next();
}

Status Lexer::TakeWord(std::string_view word) {
  if (!IsAtom(word)) return Unexpected(fmt::format("'{}'", word));
  return Next();
}

}  // namespace tessera::graph
