// SPDX-License-Identifier: Apache-2.0
#include "engine/draft_policy.h"

#include <algorithm>
#include <cmath>

namespace tessera::engine {
namespace {

constexpr double kLearn = 0.15;    // Weight of a guess.
constexpr double kForget = 0.004;  // Of a step without one, towards the prior.
constexpr double kRateMax = 0.98;  // A long run of right guesses is no promise.

}  // namespace

int64_t DraftPolicy::Count(double row_cost) const {
  if (!(row_cost < rate_)) return 0;
  if (row_cost <= 0) return kDraftTokensMax;
  // The greatest k with rate^k >= row_cost.
  const double count = std::floor(std::log(row_cost) / std::log(rate_) + 1e-9);
  return static_cast<int64_t>(std::min(count, static_cast<double>(kDraftTokensMax)));
}

void DraftPolicy::Observe(int64_t drafted, int64_t accepted) {
  const int64_t known = std::min(accepted + 1, drafted);
  for (int64_t i = 0; i < known; ++i) rate_ += kLearn * ((i < accepted ? kRateMax : 0) - rate_);
}

void DraftPolicy::Rest() {
  if (rate_ < kPrior) rate_ += kForget * (kPrior - rate_);
}

}  // namespace tessera::engine
