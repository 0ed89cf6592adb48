// SPDX-License-Identifier: Apache-2.0
//
// Names and texts from files, made fit to be shown: they may hold anything, also what steers a
// terminal or is no UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tessera::formats {

/// For terminals: control characters and bytes that are no UTF-8 become \xNN, \n and \t stay short
/// escapes. At most `max_bytes` of the input are shown, then "... (N bytes)".
std::string Printable(std::string_view text, size_t max_bytes = 4096);

/// For JSON: bytes that are no UTF-8 become U+FFFD, all else stays.
std::string ValidUtf8(std::string_view text);

}  // namespace tessera::formats
