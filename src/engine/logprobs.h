// SPDX-License-Identifier: Apache-2.0
//
// Log-probabilities under the model's own distribution: log-softmax of the raw logits, before any
// step of the sampler. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/request.h"

namespace tessera::engine {

/// log(sum(exp(values))), in double and in a fixed order; -infinity when all are.
double LogSumExp(std::span<const float> values);
double LogSumExp(std::span<const double> values);

/// The ids of the `count` greatest values, descending, the lower id first of equals.
std::vector<TokenId> GreatestIds(std::span<const float> values, size_t count);
std::vector<TokenId> GreatestIds(std::span<const double> values, size_t count);

/// Log-softmax of the raw logits for `chosen` and the `top` best ids.
Logprobs ComputeLogprobs(std::span<const float> logits, TokenId chosen, int top);

}  // namespace tessera::engine
