// SPDX-License-Identifier: Apache-2.0
//
// RestartPolicy: whether and when a group of processes that ended is started again. No clock, no
// I/O: the supervisor says what happened and when.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>

#include "base/clock.h"

namespace tessera::cli {

/// Ends longer ago than this count no more.
inline constexpr std::chrono::minutes kRestartWindow{10};
/// Before the second start within the window; twice as long before each further one. The first is
/// at once.
inline constexpr std::chrono::seconds kRestartDelayFirst{1};
inline constexpr std::chrono::seconds kRestartDelayMax{30};

class RestartPolicy {
 public:
  /// At most so many starts again within the window.
  explicit RestartPolicy(int most) : most_(most) {}

  /// The group serves.
  void Ready() { was_ready_ = true; }
  /// It ended. The time to wait before it is started again; nothing: give up, and GaveUp() says
  /// why. `is_crash`: by a signal, so that another try may go better; what ends with a status
  /// before it was ever ready (a model that is not there, ranks that do not divide) never will.
  std::optional<Duration> Ended(bool is_crash, TimePoint now);
  /// Half a sentence.
  const std::string& GaveUp() const { return gave_up_; }
  /// Starts again within the window, the one that Ended just granted included.
  int count() const { return static_cast<int>(ends_.size()); }

 private:
  int most_;
  bool was_ready_ = false;
  std::deque<TimePoint> ends_;  // Within the window, oldest first.
  std::string gave_up_;
};

}  // namespace tessera::cli
