// SPDX-License-Identifier: Apache-2.0
//
// Brief: the beginning of a text that a caller sent, for messages that quote it. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "base/utf8.h"

namespace tessera::gateway {

/// At most `bytes_max` bytes, no character cut in two: what is written as JSON must be UTF-8, or
/// nobody can read it back.
inline std::string_view Brief(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  while (bytes_max > 0 && IsUtf8Continuation(text[bytes_max])) --bytes_max;
  return text.substr(0, bytes_max);
}

}  // namespace tessera::gateway
