// SPDX-License-Identifier: Apache-2.0
#include "engine/prompt_budget.h"

#include <gtest/gtest.h>

namespace tessera::engine {
namespace {

using std::chrono::milliseconds;
constexpr Duration kTarget = milliseconds(100);

TEST(PromptBudget, WhileFewWaitAStepTakesTwiceADecodeStep) {
  for (const int64_t prompts : {0, 1, 2, 4})
    EXPECT_EQ(StepTimeBesidePrompts(kTarget, milliseconds(10), 32, prompts), milliseconds(20))
        << prompts;
}

TEST(PromptBudget, TheMoreWaitBesideTheFewerWhoReadTheLongerItIs) {
  EXPECT_EQ(StepTimeBesidePrompts(kTarget, milliseconds(10), 32, 8), milliseconds(30));
  EXPECT_EQ(StepTimeBesidePrompts(kTarget, milliseconds(10), 16, 8), milliseconds(50));
  EXPECT_EQ(StepTimeBesidePrompts(kTarget, milliseconds(2), 1, 1), milliseconds(18));
}

TEST(PromptBudget, TheTargetIsTheMost) {
  EXPECT_EQ(StepTimeBesidePrompts(kTarget, milliseconds(49), 8, 1), milliseconds(98));
  EXPECT_EQ(StepTimeBesidePrompts(kTarget, milliseconds(50), 8, 1), kTarget);
  EXPECT_EQ(StepTimeBesidePrompts(kTarget, milliseconds(51), 8, 1), kTarget);
  EXPECT_EQ(StepTimeBesidePrompts(kTarget, milliseconds(2), 1, 31), kTarget);
  EXPECT_EQ(StepTimeBesidePrompts(kTarget, std::chrono::hours(100), 1, 1'000'000), kTarget);
}

}  // namespace
}  // namespace tessera::engine
