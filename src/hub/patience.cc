// SPDX-License-Identifier: Apache-2.0
#include "hub/patience.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace tessera::hub {

bool Patience::Wait(std::optional<std::chrono::milliseconds> asked) {
  const auto pause = std::max(wait_, asked.value_or(wait_));
  wait_ = std::min<std::chrono::milliseconds>(wait_ * 2, settings_.retry_wait_max);
  if (Clock::Real().Now() + pause - begin_ > settings_.api_patience) return false;
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  (void)never.wait_for(lock, pause);
  return true;
}

}  // namespace tessera::hub
