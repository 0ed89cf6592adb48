// SPDX-License-Identifier: Apache-2.0
//
// Guessing the next tokens from what was said before (prompt lookup decoding: Saxena, 2023): where
// the last few tokens occurred earlier, what followed there often follows again, as in code that is
// edited or text that is quoted. Pure function, O(tokens).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/tokenizer.h"

namespace tessera::engine {

/// At most `count` tokens that followed the longest earlier occurrence of the end of `tokens`, of
/// equally long ones (longer than kMatchTokensMax counts as that) the latest. Empty when fewer than
/// kMatchTokensMin tokens recur.
std::vector<text::TokenId> NgramDraft(std::span<const text::TokenId> tokens, int64_t count);

inline constexpr int64_t kMatchTokensMin = 2;
inline constexpr int64_t kMatchTokensMax = 8;

}  // namespace tessera::engine
