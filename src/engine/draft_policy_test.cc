// SPDX-License-Identifier: Apache-2.0
#include "engine/draft_policy.h"

#include <gtest/gtest.h>

namespace tessera::engine {
namespace {

TEST(DraftPolicy, ChecksAsManyAsGainMoreThanTheyCost) {
  const DraftPolicy policy;  // rate 0.6: 0.6, 0.36, 0.216, 0.1296, ...
  EXPECT_EQ(policy.Count(0.7), 0);
  EXPECT_EQ(policy.Count(0.6), 0) << "no gain at break-even";
  EXPECT_EQ(policy.Count(0.5), 1);
  EXPECT_EQ(policy.Count(0.3), 2);
  EXPECT_EQ(policy.Count(0.13), 3);
  EXPECT_EQ(policy.Count(0), kDraftTokensMax);
  EXPECT_EQ(policy.Count(1e-12), kDraftTokensMax);
}

TEST(DraftPolicy, WrongGuessesSwitchItOffAndTimeOnAgain) {
  DraftPolicy policy;
  int tries = 0;
  for (; policy.Count(0.2) > 0; ++tries) {
    ASSERT_LT(tries, 50);
    policy.Observe(policy.Count(0.2), 0);
  }
  EXPECT_LT(tries, 10);
  int rests = 0;
  for (; policy.Count(0.2) == 0; ++rests) {
    ASSERT_LT(rests, 1000);
    policy.Rest();
  }
  EXPECT_LE(rests, 60);
  // A try now and then costs little: of 1000 steps few have a wrong guess.
  int wrong = 0;
  for (int step = 0; step < 1000; ++step) {
    if (policy.Count(0.2) > 0) {
      policy.Observe(policy.Count(0.2), 0);
      ++wrong;
    } else {
      policy.Rest();
    }
  }
  EXPECT_LT(wrong, 100);
}

TEST(DraftPolicy, RightGuessesMakeItBold) {
  DraftPolicy policy;
  for (int i = 0; i < 10; ++i) policy.Observe(4, 4);
  EXPECT_GT(policy.rate(), 0.9);
  EXPECT_EQ(policy.Count(0.2), kDraftTokensMax);
  const double before = policy.rate();
  policy.Observe(8, 2);  // One wrong guess, six that say nothing.
  EXPECT_GT(policy.rate(), before - 0.16);
}

}  // namespace
}  // namespace tessera::engine
