// SPDX-License-Identifier: Apache-2.0
//
// TokenBucket: an allowance that refills evenly (Turner, "New directions in communications", 1986).
// It holds at most what a minute brings and is full at first; what is charged afterwards (the
// tokens of an answer) may take it below zero, and then it has to come up again. Plain values; time
// is the caller's and must not go back.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace tessera::access {

class TokenBucket {
 public:
  /// `per_minute` > 0.
  TokenBucket(int64_t per_minute, TimePoint now);

  /// What is used up stays so: a larger rate leaves more, a smaller one less, perhaps none.
  void SetRate(int64_t per_minute, TimePoint now);

  int64_t per_minute() const { return per_minute_; }
  /// What is there now; below zero: owed.
  double Level(TimePoint now) const;
  /// All of it or nothing.
  bool TryTake(int64_t amount, TimePoint now);
  /// Also beyond what is there. A negative amount gives back.
  void Charge(int64_t amount, TimePoint now);
  /// Until so much will be there; zero if it is. At most a year, for what a bucket never holds.
  Duration Until(double amount, TimePoint now) const;

 private:
  int64_t per_minute_;
  double level_;
  TimePoint at_;  // When it was that.
};

}  // namespace tessera::access
