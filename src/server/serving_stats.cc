// SPDX-License-Identifier: Apache-2.0
#include "server/serving_stats.h"

#include <algorithm>
#include <array>

namespace tessera::server {
namespace {

constexpr std::array<std::string_view, 7> kMethods = {"GET",   "HEAD",   "POST",   "PUT",
                                                      "PATCH", "DELETE", "OPTIONS"};

}  // namespace

ServingStats::ServingStats() {
  // There from the start, so that rates have a beginning.
  using enum engine::CacheMiss::Reason;
  for (const auto reason : {kOff, kNeverStored, kDiffers, kEvicted, kLogprobs})
    counts_.cache_misses[engine::CacheMissName(reason)] = 0;
}

void ServingStats::CountAnswer(std::string_view route, std::string_view method, int status) {
  const bool is_known = std::ranges::find(kMethods, method) != kMethods.end();
  AnswerKind kind{.route = std::string(route.empty() ? "none" : route),
                  .method = std::string(is_known ? method : "other"),
                  .status = status};
  const std::lock_guard lock(mutex_);
  ++counts_.answers[std::move(kind)];
}

void ServingStats::CountCacheMiss(engine::CacheMiss::Reason reason) {
  if (reason == engine::CacheMiss::Reason::kNone) return;
  const std::lock_guard lock(mutex_);
  ++counts_.cache_misses[engine::CacheMissName(reason)];
}

void ServingStats::ObservePreparation(Duration duration) {
  const std::lock_guard lock(mutex_);
  counts_.preparation.Observe(Seconds(duration));
}

void ServingStats::ObserveCancel(Duration duration) {
  const std::lock_guard lock(mutex_);
  counts_.cancel.Observe(Seconds(duration));
}

ServingStats::Counts ServingStats::Snapshot() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace tessera::server
