// SPDX-License-Identifier: Apache-2.0
#include "engine/watchdog.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace tessera::engine {
namespace {

using std::chrono::milliseconds;

/// What was reported, for a thread that waits for it.
class Reports {
 public:
  Watchdog::Report Sink() {
    return [this](const Watchdog::Stuck& stuck) {
      const std::lock_guard lock(mutex_);
      all_.push_back(stuck);
      changed_.notify_all();
    };
  }
  std::vector<Watchdog::Stuck> Await(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return all_.size() >= count; });
    return all_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Watchdog::Stuck> all_;
};

TEST(Watchdog, NamesTheStageOnceAndSaysWhenItIsOver) {
  StageMarker marker;
  Reports reports;
  marker.Enter(Stage::kModel, Clock::Real().Now());
  auto watchdog = Watchdog::Start(&marker, &Clock::Real(), milliseconds(8), reports.Sink());
  ASSERT_TRUE(watchdog.has_value());
  EXPECT_EQ(reports.Await(1)[0].stage, Stage::kModel);
  marker.Enter(Stage::kDeliver, Clock::Real().Now());
  // Over, then the next stage takes long: with the first report that is three, not more.
  const std::vector<Watchdog::Stuck> all = reports.Await(3);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_FALSE(all[0].is_over);
  EXPECT_GT(all[0].age, milliseconds(8));
  EXPECT_TRUE(all[1].is_over);
  EXPECT_EQ(all[1].stage, Stage::kModel);
  EXPECT_EQ(all[2].stage, Stage::kDeliver);
  EXPECT_FALSE(all[2].is_over);
}

TEST(StageMarker, KeepsStageAndTimeTogether) {
  StageMarker marker;
  EXPECT_EQ(marker.Look().stage, Stage::kIdle);
  const TimePoint now = Clock::Real().Now();
  marker.Enter(Stage::kDeliver, now);
  EXPECT_EQ(marker.Look().stage, Stage::kDeliver);
  EXPECT_EQ(marker.Look().since, now);
}

TEST(StageMarker, EveryStageHasAName) {
  for (uint8_t i = 0; i <= static_cast<uint8_t>(Stage::kDeliver); ++i)
    EXPECT_NE(StageName(static_cast<Stage>(i)), "unknown");
}

}  // namespace
}  // namespace tessera::engine
