// SPDX-License-Identifier: Apache-2.0
//
// DRY, one step of the sampler (sampler.h): for each token that would go on with what followed an
// earlier occurrence of the last n tokens, n as great as it gets, multiplier * base ^ (n -
// allowed_length) is taken from its logit when n >= allowed_length. An occurrence neither holds a
// breaker nor begins before the last `last_tokens` tokens. A breaker itself is never made less
// likely.
//
// Pure functions, O(tokens) by the Z-algorithm (Gusfield, "Algorithms on strings", 1997).
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "engine/request.h"

namespace tessera::engine {

inline bool IsOn(const DryParams& dry) {
  return dry.multiplier > 0 && dry.last_tokens != 0;
}

/// What to take from whose logit, each id once. `tokens` are prompt and answer so far.
std::vector<std::pair<TokenId, double>> DryPenalties(const DryParams& dry,
                                                     std::span<const TokenId> tokens);

}  // namespace tessera::engine
