// SPDX-License-Identifier: Apache-2.0
#include "access/token_bucket.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/check.h"

namespace tessera::access {

TokenBucket::TokenBucket(int64_t per_minute, TimePoint now)
    : per_minute_(per_minute), level_(static_cast<double>(per_minute)), at_(now) {
  TESSERA_CHECK(per_minute > 0);
}

void TokenBucket::SetRate(int64_t per_minute, TimePoint now) {
  TESSERA_CHECK(per_minute > 0);
  const double used = static_cast<double>(per_minute_) - Level(now);
  per_minute_ = per_minute;
  level_ = static_cast<double>(per_minute) - used;
  at_ = now;
}

double TokenBucket::Level(TimePoint now) const {
  const auto full = static_cast<double>(per_minute_);
  return std::min(full, level_ + Seconds(now - at_) * full / 60);
}

bool TokenBucket::TryTake(int64_t amount, TimePoint now) {
  // A millionth of a token is rounding, not a reason to wait.
  if (Level(now) + 1e-6 < static_cast<double>(amount)) return false;
  Charge(amount, now);
  return true;
}

void TokenBucket::Charge(int64_t amount, TimePoint now) {
  level_ = std::min(static_cast<double>(per_minute_), Level(now) - static_cast<double>(amount));
  at_ = now;
}

Duration TokenBucket::Until(double amount, TimePoint now) const {
  constexpr double kYear = 365.0 * 86400;
  const double missing = amount - Level(now);
  if (missing <= 1e-6) return Duration::zero();
  const double seconds = missing * 60 / static_cast<double>(per_minute_);
  return Duration(static_cast<int64_t>(std::ceil(std::min(seconds, kYear) * 1e9)));
}

}  // namespace tessera::access
