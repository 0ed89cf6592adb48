// SPDX-License-Identifier: Apache-2.0
#include "engine/watchdog.h"

#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/thread.h"

namespace tessera::engine {

std::string_view StageName(Stage stage) {
  switch (stage) {
    case Stage::kIdle:
      return "idle";
    case Stage::kCommands:
      return "taking in requests";
    case Stage::kPlan:
      return "planning a step";
    case Stage::kModel:
      return "running the model";
    case Stage::kDraw:
      return "choosing tokens";
    case Stage::kDeliver:
      return "handing over tokens";
  }
  return "unknown";
}

Watchdog::Watchdog(const StageMarker* marker, const Clock* clock, Duration limit, Report report)
    : marker_(marker), clock_(clock), limit_(limit), report_(std::move(report)) {
  TESSERA_CHECK(limit > Duration::zero());
}

Result<std::unique_ptr<Watchdog>> Watchdog::Start(const StageMarker* marker, const Clock* clock,
                                                  Duration limit, Report report) {
  std::unique_ptr<Watchdog> watchdog(new Watchdog(marker, clock, limit, std::move(report)));
  TESSERA_ASSIGN_OR_RETURN(watchdog->thread_,
                           StartThread("the watchdog", [raw = watchdog.get()] { raw->Run(); }));
  return watchdog;
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::Run() {
  StageMarker::View reported;  // Stage kIdle: nothing is.
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, limit_ / 4, [this] { return is_stopping_; })) LookOnce(&reported);
}

void Watchdog::LookOnce(StageMarker::View* reported) const {
  const StageMarker::View view = marker_->Look();
  const TimePoint now = clock_->Now();
  const bool is_same = view.stage == reported->stage && view.since == reported->since;
  if (reported->stage != Stage::kIdle && !is_same) {
    report_({reported->stage, now - reported->since, /*is_over=*/true});
    *reported = {};
  }
  if (view.stage == Stage::kIdle || is_same || now - view.since <= limit_) return;
  *reported = view;
  report_({view.stage, now - view.since, /*is_over=*/false});
}

void LogStuck(const Watchdog::Stuck& stuck) {
  if (stuck.is_over) {
    log::warn("engine: the engine goes on after {:.0f} s of {}", Seconds(stuck.age),
              StageName(stuck.stage));
  } else {
    log::error("engine: the engine is stuck: {} for {:.0f} s", StageName(stuck.stage),
               Seconds(stuck.age));
  }
}

}  // namespace tessera::engine
