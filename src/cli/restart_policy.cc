// SPDX-License-Identifier: Apache-2.0
#include "cli/restart_policy.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::cli {

std::optional<Duration> RestartPolicy::Ended(bool is_crash, TimePoint now) {
  while (!ends_.empty() && now - ends_.front() > kRestartWindow) ends_.pop_front();
  if (!was_ready_ && !is_crash) {
    gave_up_ = "it could not start at all";
    return std::nullopt;
  }
  if (count() >= most_) {
    gave_up_ = most_ == 0 ? "it is not started again (--rank-restarts 0)"
                          : fmt::format("it was started again {} times within {} minutes", count(),
                                        kRestartWindow.count());
    return std::nullopt;
  }
  ends_.push_back(now);
  if (count() == 1) return Duration::zero();
  Duration delay = kRestartDelayFirst;
  for (int i = 2; i < count() && delay < kRestartDelayMax; ++i) delay *= 2;
  return std::min<Duration>(delay, kRestartDelayMax);
}

}  // namespace tessera::cli
