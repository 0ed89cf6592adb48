// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <algorithm>

namespace tessera {

size_t Utf8CharacterBytes(std::string_view text) {
  if (text.empty()) return 0;
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  size_t size = 0;
  unsigned char low = 0x80, high = 0xBF;  // Bounds of the second byte.
  if (lead >= 0xC2 && lead <= 0xDF) {
    size = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    size = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    size = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  if (text.size() < size) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  if (second < low || second > high) return 0;
  return std::ranges::all_of(text.substr(2, size - 2), IsUtf8Continuation) ? size : 0;
}

bool IsUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t size = Utf8CharacterBytes(bytes);
    if (size == 0) return false;
    bytes.remove_prefix(size);
  }
  return true;
}

std::string EscapeNonUtf8(std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string text;
  while (!bytes.empty()) {
    const size_t size = Utf8CharacterBytes(bytes);
    if (size > 0) {
      text += bytes.substr(0, size);
    } else {
      const auto byte = static_cast<unsigned char>(bytes.front());
      text += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
    bytes.remove_prefix(std::max<size_t>(size, 1));
  }
  return text;
}

int64_t CodePoints(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return !IsUtf8Continuation(c); });
}

}  // namespace tessera
