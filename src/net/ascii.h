// SPDX-License-Identifier: Apache-2.0
//
// Character classes of RFC 9110 and comparisons without case, independent of the locale. Total.
#pragma once

#include <algorithm>
#include <string_view>

namespace tessera::net {

constexpr bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool IsAlpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
constexpr char ToLower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

/// tchar: what method and header names are made of.
constexpr bool IsTokenChar(char c) {
  return IsDigit(c) || IsAlpha(c) || (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").contains(c));
}
constexpr bool IsToken(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, IsTokenChar);
}
/// A byte of a field value: visible, space, tab or above ASCII.
constexpr bool IsFieldChar(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
}

/// -1 if `c` is no hexadecimal digit.
constexpr int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  const char lower = ToLower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

constexpr bool EqualsNoCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return ToLower(x) == ToLower(y); });
}

/// Without spaces and tabs at both ends.
constexpr std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace tessera::net
