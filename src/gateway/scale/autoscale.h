// SPDX-License-Identifier: Apache-2.0
//
// Autoscale: how many workers an endpoint should have for the calls that are open. Up at once, down
// after a window, so that a pause between two bursts costs no cold start. Pure: time and load are
// the caller's.
//
//   needed = ceil(open calls / per_worker), clamped to [min_workers, max_workers]
//   wanted = the largest `needed` of the last `window`; 0 only after `idle` without any call
//
// Open calls are those that workers have and those that wait for one: a queue counts, so a held
// call at zero workers brings the first.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>

#include "base/clock.h"

namespace tessera::gateway {

struct ScaleRules {
  int64_t min_workers = 0;
  int64_t max_workers = 1;
  int64_t per_worker = 1;  // > 0
  Duration window = std::chrono::seconds(30);
  Duration idle = std::chrono::seconds(60);  // Before the last worker goes.
};

class Autoscaler {
 public:
  /// `now` is taken as the time of a call: a fresh endpoint is idle only after `idle`.
  explicit Autoscaler(TimePoint now) : last_call_(now) {}

  /// `open_calls` at this moment, and whether any call came since the last look. Times must not go
  /// back. Memory: one entry for each step down within the window.
  int64_t Look(const ScaleRules& rules, int64_t open_calls, bool had_calls, TimePoint now);

 private:
  struct Need {
    TimePoint at;
    int64_t workers;
  };
  /// Falling from front to back: the front is the window's largest (a monotonic queue).
  std::deque<Need> needs_;
  TimePoint last_call_;
};

}  // namespace tessera::gateway
