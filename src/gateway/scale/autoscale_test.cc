// SPDX-License-Identifier: Apache-2.0
#include "gateway/scale/autoscale.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/random.h"

namespace tessera::gateway {
namespace {

using std::chrono::seconds;

constexpr TimePoint At(int64_t second) {
  return TimePoint(seconds(second));
}
const ScaleRules kRules{.min_workers = 0,
                        .max_workers = 5,
                        .per_worker = 4,
                        .window = seconds(30),
                        .idle = seconds(60)};

TEST(Autoscaler, GoesUpAtOnce) {
  Autoscaler scaler(At(0));
  EXPECT_EQ(scaler.Look(kRules, 4, true, At(1)), 1);
  EXPECT_EQ(scaler.Look(kRules, 5, true, At(1)), 2);
  EXPECT_EQ(scaler.Look(kRules, 1000, true, At(1)), 5) << "max_workers";
}

TEST(Autoscaler, GoesDownAfterTheWindow) {
  Autoscaler scaler(At(0));
  EXPECT_EQ(scaler.Look(kRules, 12, true, At(0)), 3);
  EXPECT_EQ(scaler.Look(kRules, 5, true, At(10)), 3);
  EXPECT_EQ(scaler.Look(kRules, 1, true, At(30)), 3);
  EXPECT_EQ(scaler.Look(kRules, 1, true, At(31)), 2) << "what was needed at 10";
  EXPECT_EQ(scaler.Look(kRules, 1, true, At(41)), 1);
}

TEST(Autoscaler, GoesToZeroOnlyWhenIdle) {
  Autoscaler scaler(At(0));
  EXPECT_EQ(scaler.Look(kRules, 0, false, At(59)), 1) << "a fresh endpoint is not idle";
  EXPECT_EQ(scaler.Look(kRules, 0, true, At(59)), 1) << "a call that came and went";
  EXPECT_EQ(scaler.Look(kRules, 0, false, At(118)), 1);
  EXPECT_EQ(scaler.Look(kRules, 0, false, At(119)), 0);
  EXPECT_EQ(scaler.Look(kRules, 1, true, At(120)), 1) << "a held call brings the first";
  ScaleRules kept = kRules;
  kept.min_workers = 2;
  EXPECT_EQ(scaler.Look(kept, 0, false, At(1000)), 2);
}

// Against the definition, with all of the past at hand.
TEST(Autoscaler, IsTheLargestNeedOfTheWindow) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    Autoscaler scaler(At(0));
    std::vector<std::pair<int64_t, int64_t>> past;
    int64_t second = 0, last_call = 0;
    for (int step = 0; step < 200; ++step) {
      second += static_cast<int64_t>(random.Below(9));
      const auto open = static_cast<int64_t>(random.Below(3) == 0 ? random.Below(30) : 0);
      past.emplace_back(second, (open + 3) / 4);
      if (open > 0) last_call = second;
      int64_t largest = second - last_call >= 60 ? 0 : 1;
      for (const auto& [at, need] : past)
        if (second - at <= 30) largest = std::max(largest, need);
      ASSERT_EQ(scaler.Look(kRules, open, open > 0, At(second)), std::min<int64_t>(largest, 5))
          << seed << " " << step;
    }
  }
}

}  // namespace
}  // namespace tessera::gateway
