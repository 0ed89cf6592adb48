// SPDX-License-Identifier: Apache-2.0
//
// AdmissionRate: how fast the queue moves: requests a second that got a place in the batch, over
// the last few of them. Plain values, one owner.
#pragma once

#include <cstddef>
#include <deque>

#include "base/clock.h"

namespace tessera::engine {

class AdmissionRate {
 public:
  void Note(TimePoint now) {
    times_.push_back(now);
    if (times_.size() > kRemembered) times_.pop_front();
  }
  /// 0 before there were two. Falls while nobody is admitted.
  double PerSecond(TimePoint now) const {
    if (times_.size() < 2 || now <= times_.front()) return 0;
    return static_cast<double>(times_.size() - 1) / Seconds(now - times_.front());
  }

 private:
  static constexpr size_t kRemembered = 33;
  std::deque<TimePoint> times_;
};

}  // namespace tessera::engine
