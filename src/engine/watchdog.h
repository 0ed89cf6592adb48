// SPDX-License-Identifier: Apache-2.0
//
// Watchdog: a thread that looks after the engine thread and says which stage it is stuck in, once
// for each time. It only reports: what is stuck may be a slow disk, and ends or does not.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/status.h"
#include "engine/stage.h"

namespace tessera::engine {

class Watchdog {
 public:
  /// Called on the watchdog's thread when a stage (never kIdle) has taken longer than the limit,
  /// and with the same stage again, `is_over`, when it has ended.
  struct Stuck {
    Stage stage = Stage::kIdle;
    Duration age{};
    bool is_over = false;
  };
  using Report = std::function<void(const Stuck&)>;

  /// All outlive it. Looks every quarter of `limit`, which is positive.
  static Result<std::unique_ptr<Watchdog>> Start(const StageMarker* marker, const Clock* clock,
                                                 Duration limit, Report report);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  Watchdog(const StageMarker* marker, const Clock* clock, Duration limit, Report report);
  void Run();
  void LookOnce(StageMarker::View* reported) const;

  const StageMarker* const marker_;
  const Clock* const clock_;
  const Duration limit_;
  const Report report_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_stopping_ = false;  // Under mutex_.
  std::thread thread_;
};

/// The report that Engine uses: a line in the log.
void LogStuck(const Watchdog::Stuck& stuck);

}  // namespace tessera::engine
