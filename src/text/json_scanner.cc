// SPDX-License-Identifier: Apache-2.0
#include "text/json_scanner.h"

namespace tessera::text {
namespace {

constexpr bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool IsHex(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

}  // namespace

JsonScanner::Step JsonScanner::Push(char c) {
  switch (state_) {
    case State::kValue:
    case State::kValueOrEnd:
      return Begin(c);
    case State::kKeyOrEnd:
    case State::kKey:
    case State::kColon:
    case State::kCommaOrEnd:
      return Separator(c);
    case State::kString:
    case State::kEscape:
    case State::kHex:
      return InString(c);
    case State::kWord:
      if (c != word_.front()) return Bad();
      word_.remove_prefix(1);
      return word_.empty() ? ValueDone() : Step::kMore;
    case State::kBad:
      return Step::kBad;
    default:
      return InNumber(c);
  }
}

JsonScanner::Step JsonScanner::Begin(char c) {
  if (IsJsonSpace(c) && !containers_.empty()) return Step::kMore;
  if (c == ']' && state_ == State::kValueOrEnd) return Close();
  if (c == '{' || c == '[') return Open(c);
  if (c == '"') {
    is_key_ = false;
    return To(State::kString);
  }
  if (c == '-') return To(State::kMinus);
  if (c == '0') return To(State::kZero);
  if (IsDigit(c)) return To(State::kInteger);
  if (c == 't') word_ = "rue";
  if (c == 'f') word_ = "alse";
  if (c == 'n') word_ = "ull";
  return c == 't' || c == 'f' || c == 'n' ? To(State::kWord) : Bad();
}

JsonScanner::Step JsonScanner::Open(char c) {
  if (containers_.size() == kDepthMax) return Bad();
  containers_.push_back(c);
  return To(c == '{' ? State::kKeyOrEnd : State::kValueOrEnd);
}

JsonScanner::Step JsonScanner::Close() {
  containers_.pop_back();
  return ValueDone();
}

JsonScanner::Step JsonScanner::ValueDone() {
  state_ = State::kCommaOrEnd;
  return containers_.empty() ? Step::kDone : Step::kMore;
}

JsonScanner::Step JsonScanner::Separator(char c) {
  if (IsJsonSpace(c)) return Step::kMore;
  switch (state_) {
    case State::kKeyOrEnd:
      if (c == '}') return Close();
      [[fallthrough]];
    case State::kKey:
      if (c != '"') return Bad();
      is_key_ = true;
      return To(State::kString);
    case State::kColon:
      return c == ':' ? To(State::kValue) : Bad();
    default: {
      const bool in_object = containers_.back() == '{';
      if (c == ',') return To(in_object ? State::kKey : State::kValue);
      return c == (in_object ? '}' : ']') ? Close() : Bad();
    }
  }
}

JsonScanner::Step JsonScanner::InString(char c) {
  if (state_ == State::kHex) {
    if (!IsHex(c)) return Bad();
    return --hex_left_ == 0 ? To(State::kString) : Step::kMore;
  }
  if (state_ == State::kEscape) {
    if (c == 'u') {
      hex_left_ = 4;
      return To(State::kHex);
    }
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    return kEscapes.find(c) != std::string_view::npos ? To(State::kString) : Bad();
  }
  if (c == '\\') return To(State::kEscape);
  if (static_cast<unsigned char>(c) < 0x20) return Bad();
  if (c != '"') return Step::kMore;
  return is_key_ ? To(State::kColon) : ValueDone();
}

JsonScanner::Step JsonScanner::InNumber(char c) {
  switch (state_) {
    case State::kMinus:
      if (c == '0') return To(State::kZero);
      return IsDigit(c) ? To(State::kInteger) : Bad();
    case State::kZero:
    case State::kInteger:
      if (IsDigit(c)) return state_ == State::kInteger ? Step::kMore : Bad();
      if (c == '.') return To(State::kPoint);
      return c == 'e' || c == 'E' ? To(State::kExponent) : EndNumber(c);
    case State::kPoint:
      return IsDigit(c) ? To(State::kFraction) : Bad();
    case State::kFraction:
      if (IsDigit(c)) return Step::kMore;
      return c == 'e' || c == 'E' ? To(State::kExponent) : EndNumber(c);
    case State::kExponent:
      if (c == '+' || c == '-') return To(State::kExponentSign);
      [[fallthrough]];
    case State::kExponentSign:
      return IsDigit(c) ? To(State::kExponentDigit) : Bad();
    default:
      return IsDigit(c) ? Step::kMore : EndNumber(c);
  }
}

/// A number ends where something else begins: the byte belongs to what is around it.
JsonScanner::Step JsonScanner::EndNumber(char c) {
  if (containers_.empty()) return Step::kDoneBefore;
  state_ = State::kCommaOrEnd;
  return Separator(c);
}

bool JsonScanner::Finish() const {
  if (!containers_.empty()) return false;
  return state_ == State::kCommaOrEnd || state_ == State::kZero || state_ == State::kInteger ||
         state_ == State::kFraction || state_ == State::kExponentDigit;
}

}  // namespace tessera::text
