// SPDX-License-Identifier: Apache-2.0
#include "gateway/scale/autoscale.h"

#include <algorithm>

#include "base/check.h"

namespace tessera::gateway {

int64_t Autoscaler::Look(const ScaleRules& rules, int64_t open_calls, bool had_calls,
                         TimePoint now) {
  TESSERA_CHECK(rules.per_worker > 0 && open_calls >= 0);
  if (open_calls > 0 || had_calls) last_call_ = std::max(last_call_, now);
  const int64_t needed = open_calls / rules.per_worker + (open_calls % rules.per_worker != 0);
  while (!needs_.empty() && needs_.back().workers <= needed) needs_.pop_back();
  needs_.push_back({now, needed});
  while (now - needs_.front().at > rules.window) needs_.pop_front();
  const bool is_idle = now - last_call_ >= rules.idle;
  const int64_t wanted = std::max(needs_.front().workers, int64_t{is_idle ? 0 : 1});
  return std::min(std::max(wanted, rules.min_workers), rules.max_workers);
}

}  // namespace tessera::gateway
