// SPDX-License-Identifier: Apache-2.0
//
// What the terminal and pipes may make the program hold.
#pragma once

#include <cstdint>

namespace tessera::cli {

/// A line of `run`'s chat, without its line end: about a million tokens.
inline constexpr uint64_t kMaxChatLineBytes = 4 << 20;

}  // namespace tessera::cli
