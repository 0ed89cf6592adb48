// SPDX-License-Identifier: Apache-2.0
//
// ServingStats: what the HTTP side counts beside the engine's statistics. Labels are ours and few:
// no client can make series. Thread-safe.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/histogram.h"
#include "engine/request.h"
#include "engine/stats.h"

namespace tessera::server {

/// HTTP answers that are told apart.
struct AnswerKind {
  std::string route;   // A pattern of ours; "none" for paths and methods that we do not have.
  std::string method;  // "other" for methods that we do not know.
  int status = 0;
  auto operator<=>(const AnswerKind&) const = default;
};

class ServingStats {
 public:
  struct Counts {
    std::map<AnswerKind, int64_t> answers;
    std::map<std::string_view, int64_t> cache_misses;  // By reason.
    Histogram preparation{engine::LatencyBounds()};    // Seconds.
    Histogram cancel{engine::LatencyBounds()};         // Seconds.
  };

  ServingStats();

  void CountAnswer(std::string_view route, std::string_view method, int status);
  /// Of a prompt that ran; what was found in the cache is no miss.
  void CountCacheMiss(engine::CacheMiss::Reason reason);
  /// Arrival of a request until the engine had it: parsing, rendering, tokenising, grammars.
  void ObservePreparation(Duration duration);
  /// From the wish to end a generation until its pages were free.
  void ObserveCancel(Duration duration);

  Counts Snapshot() const;

 private:
  mutable std::mutex mutex_;
  Counts counts_;
};

}  // namespace tessera::server
