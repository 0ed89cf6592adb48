// SPDX-License-Identifier: Apache-2.0
//
// UTF-8 questions that the dialects ask. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera::server {

/// Well-formed by the Unicode standard's table 3-7 (no overlong forms, no surrogates).
bool IsUtf8(std::string_view bytes);
/// Code points of well-formed text.
int64_t CodePoints(std::string_view text);

}  // namespace tessera::server
