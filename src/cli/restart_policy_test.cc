// SPDX-License-Identifier: Apache-2.0
#include "cli/restart_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tessera::cli {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

const TimePoint kBegin{std::chrono::hours(1)};

TEST(RestartPolicy, WhatNeverStartedAndEndsWithAStatusIsNotTriedAgain) {
  RestartPolicy policy(5);
  EXPECT_FALSE(policy.Ended(/*is_crash=*/false, kBegin).has_value());
  EXPECT_THAT(policy.GaveUp(), HasSubstr("could not start at all"));
}

TEST(RestartPolicy, ACrashIsTriedAgainAlsoBeforeItWasReady) {
  RestartPolicy policy(5);
  EXPECT_EQ(policy.Ended(/*is_crash=*/true, kBegin), Duration::zero());
}

TEST(RestartPolicy, WhatWasReadyIsTriedAgainHoweverItEnds) {
  RestartPolicy policy(5);
  policy.Ready();
  EXPECT_EQ(policy.Ended(/*is_crash=*/false, kBegin), Duration::zero());
}

TEST(RestartPolicy, WaitsTwiceAsLongEachTimeUpToALimit) {
  RestartPolicy policy(100);
  std::vector<Duration> waits;
  for (int i = 0; i < 9; ++i) waits.push_back(policy.Ended(/*is_crash=*/true, kBegin).value());
  EXPECT_THAT(waits, ::testing::ElementsAre(seconds(0), seconds(1), seconds(2), seconds(4),
                                            seconds(8), seconds(16), kRestartDelayMax,
                                            kRestartDelayMax, kRestartDelayMax));
}

TEST(RestartPolicy, GivesUpAfterSoManyWithinTheWindow) {
  RestartPolicy policy(2);
  policy.Ready();
  EXPECT_TRUE(policy.Ended(true, kBegin).has_value());
  EXPECT_TRUE(policy.Ended(true, kBegin + seconds(1)).has_value());
  EXPECT_FALSE(policy.Ended(true, kBegin + seconds(2)).has_value());
  EXPECT_THAT(policy.GaveUp(), HasSubstr("2 times within 10 minutes"));
}

TEST(RestartPolicy, EndsLongAgoCountNoMore) {
  RestartPolicy policy(1);
  policy.Ready();
  EXPECT_TRUE(policy.Ended(true, kBegin).has_value());
  EXPECT_EQ(policy.Ended(true, kBegin + kRestartWindow + seconds(1)), Duration::zero());
  EXPECT_FALSE(policy.Ended(true, kBegin + kRestartWindow + minutes(1)).has_value());
}

TEST(RestartPolicy, ZeroIsNever) {
  RestartPolicy policy(0);
  policy.Ready();
  EXPECT_FALSE(policy.Ended(true, kBegin).has_value());
  EXPECT_THAT(policy.GaveUp(), HasSubstr("--rank-restarts 0"));
}

}  // namespace
}  // namespace tessera::cli
