// SPDX-License-Identifier: Apache-2.0
#include "base/json_error.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace tessera::json {
namespace {

bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/// Where a valid beginning of a JSON text has arrived.
struct Place {
  bool in_string = false;
  bool after_backslash = false;
  bool in_word = false;    // In or just behind a number, true, false or null.
  char last = 0;           // Last character that is no white space; '"' ends a string; 0 = none.
  char before_string = 0;  // `last` where the last string began.
  size_t word_begin = 0;
};

Place Scan(std::string_view before) {
  Place at;
  for (size_t i = 0; i < before.size(); ++i) {
    const char c = before[i];
    if (at.in_string) {
      if (at.after_backslash) {
        at.after_backslash = false;
      } else if (c == '\\') {
        at.after_backslash = true;
      } else if (c == '"') {
        at.in_string = false;
        at.last = c;
      }
    } else if (c == '"') {
      at.in_string = true;
      at.in_word = false;
      at.before_string = at.last;
    } else if (IsSpace(c)) {
      at.in_word = false;
    } else {
      const bool is_word = std::string_view("{}[]:,").find(c) == std::string_view::npos;
      if (is_word && !at.in_word) at.word_begin = i;
      at.in_word = is_word;
      at.last = c;
    }
  }
  return at;
}

std::string_view ExpectedInString(const Place& at, std::string_view rest) {
  if (at.after_backslash) return "an escape: one of \"\\/bfnrt or u and four hex digits";
  if (rest.empty()) return "a string's closing quote";
  const auto next = static_cast<unsigned char>(rest.front());
  if (Utf8CharacterBytes(rest) == 0) return "UTF-8, which these bytes are not";
  if (next < 0x20) return "no control character in a string (write it as an escape)";
  return "the other half of a surrogate pair (\\uD800 to \\uDBFF, then \\uDC00 to \\uDFFF)";
}

std::string_view ExpectedAfterValue(Open open) {
  switch (open) {
    case Open::kObject:
      return "',' or '}'";
    case Open::kArray:
      return "',' or ']'";
    case Open::kNothing:
      break;
  }
  return "nothing after the value";
}

/// Whether a number, true, false or null is whole.
bool IsWhole(std::string_view word) {
  return word == "true" || word == "false" || word == "null" ||
         (word.back() >= '0' && word.back() <= '9');
}

std::string_view Expected(std::string_view text, size_t offset, Open open) {
  const Place at = Scan(text.substr(0, offset));
  if (at.in_string) return ExpectedInString(at, text.substr(offset));
  const bool is_key = open == Open::kObject && (at.before_string == '{' || at.before_string == ',');
  switch (at.last) {
    case '{':
      return "a key in double quotes or '}'";
    case '[':
      return "a value or ']'";
    case ',':
      return open == Open::kObject ? "a key in double quotes" : "a value";
    case 0:
    case ':':
      return "a value";
    case '"':
      return is_key ? "':' after the key" : ExpectedAfterValue(open);
    default:
      break;
  }
  if (at.in_word && !IsWhole(text.substr(at.word_begin, offset - at.word_begin)))
    return "a number, true, false or null";
  return ExpectedAfterValue(open);
}

}  // namespace

std::string Quote(std::string_view text, size_t max_bytes) {
  std::string quoted = "\"";
  for (const char c : text.substr(0, max_bytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7F) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + (text.size() > max_bytes ? "...\"" : "\"");
}

std::string DescribeSyntaxError(std::string_view text, size_t offset, Open open) {
  const std::string_view rest = text.substr(std::min(offset, text.size()));
  return fmt::format("expected {}, got {}", Expected(text, offset, open),
                     rest.empty() ? "the end of the text" : Quote(rest, kMaxExcerptBytes));
}

}  // namespace tessera::json
