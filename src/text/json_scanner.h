// SPDX-License-Identifier: Apache-2.0
//
// JsonScanner: follows one JSON value byte by byte and says when it ends or stops being JSON
// (RFC 8259, no white space before the value). It keeps no text, so that a value of any length
// costs a few bytes; UTF-8 is the caller's matter. Split anywhere: the state is all there is.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tessera::text {

/// Space, tab, line feed, carriage return.
constexpr bool IsJsonSpace(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

class JsonScanner {
 public:
  /// Nesting of arrays and objects; what base/json.h takes from outside.
  static constexpr size_t kDepthMax = 64;

  enum class Step : uint8_t {
    kMore,        // Taken; the value goes on.
    kDone,        // Taken; the value is complete.
    kDoneBefore,  // Not taken: the value, a number, was complete before.
    kBad,         // No JSON, or nested too deeply. The scanner stays bad.
  };
  /// Requires that the value is not complete.
  Step Push(char c);
  /// The end of all input: whether the value is complete (a number has no end of its own).
  bool Finish() const;

 private:
  enum class State : uint8_t {
    kValue,          // Before a value.
    kValueOrEnd,     // After "[".
    kKeyOrEnd,       // After "{".
    kKey,            // After "," in an object.
    kColon,          // After a key.
    kCommaOrEnd,     // After a value within an array or object.
    kString,         // Within a string.
    kEscape,         // After a backslash.
    kHex,            // Within \uXXXX.
    kWord,           // Within true, false, null.
    kMinus,          // After "-".
    kZero,           // After a leading 0.
    kInteger,        // Within the integer part.
    kPoint,          // After ".".
    kFraction,       // Within the fraction.
    kExponent,       // After "e".
    kExponentSign,   // After its sign.
    kExponentDigit,  // Within its digits.
    kBad,
  };
  Step Begin(char c);
  Step Separator(char c);
  Step InString(char c);
  Step InNumber(char c);
  Step EndNumber(char c);
  Step Open(char c);
  Step Close();
  Step ValueDone();
  Step To(State state) {
    state_ = state;
    return Step::kMore;
  }
  Step Bad() {
    state_ = State::kBad;
    return Step::kBad;
  }

  State state_ = State::kValue;
  bool is_key_ = false;           // Of the current string.
  uint8_t hex_left_ = 0;          // Digits still to come.
  std::string_view word_;         // Rest of true, false, null.
  std::vector<char> containers_;  // '[' and '{', outermost first.
};

}  // namespace tessera::text
