// SPDX-License-Identifier: Apache-2.0
//
// The one place that knows UTF-8. Well-formed is what table 3-7 of the Unicode standard lists: no
// overlong forms, no surrogates, nothing past U+10FFFF. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

/// Bytes of the well-formed character at the front (1 to 4), 0 if there is none.
size_t Utf8CharacterBytes(std::string_view text);

/// Well-formed from end to end. Empty text is.
bool IsUtf8(std::string_view bytes);

/// Whether the byte goes on a character (10xxxxxx) instead of beginning one.
constexpr bool IsUtf8Continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

/// `bytes` with each byte that is part of no character written as \xE9: what a file name may hold,
/// as text that JSON can hold.
std::string EscapeNonUtf8(std::string_view bytes);

/// Code points of well-formed text.
int64_t CodePoints(std::string_view text);

}  // namespace tessera
