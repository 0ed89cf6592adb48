// SPDX-License-Identifier: Apache-2.0
//
// Clock: time as a parameter, so that tests and the simulator own it. Monotonic for durations,
// wall for dates. The real clock is stateless and may be shared by threads.
#pragma once

#include <chrono>
#include <cstdint>

namespace tessera {

using Duration = std::chrono::nanoseconds;
/// Monotonic: only differences mean something.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;
  /// Seconds since 1970-01-01 UTC.
  virtual int64_t UnixSeconds() const = 0;

  static const Clock& Real();
};

inline double Seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace tessera
