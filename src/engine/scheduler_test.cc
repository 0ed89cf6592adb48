// SPDX-License-Identifier: Apache-2.0
#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "engine/kv_pool.h"

namespace tessera::engine {
namespace {

using Views = std::vector<SequenceView>;

SequenceView Waiting(RequestId id, int64_t tokens) {
  return {id, false, tokens, 0, 0};
}
SequenceView Running(RequestId id, int64_t tokens, int64_t computed, int64_t pages) {
  return {id, true, tokens, computed, pages};
}

TEST(Schedule, NothingToDoGivesNothing) {
  EXPECT_TRUE(Schedule(Views{}, {8, 4, 16, 10}).work.empty());
}

TEST(Schedule, CutsAPromptIntoStepsOfMaxRows) {
  const Decision first = Schedule(Views{Waiting(1, 20)}, {8, 4, 16, 10});
  EXPECT_EQ(first.work, (std::vector<Work>{{0, 8}}));
  const Decision last = Schedule(Views{Running(1, 20, 16, 1)}, {8, 4, 16, 9});
  EXPECT_EQ(last.work, (std::vector<Work>{{0, 4}}));
}

TEST(Schedule, DecodingSequencesComeBeforeAnOlderPrompt) {
  const Views views{Running(1, 100, 8, 1), Running(2, 5, 4, 1), Running(3, 9, 8, 1)};
  const Decision decision = Schedule(views, {6, 4, 16, 10});
  EXPECT_EQ(decision.work, (std::vector<Work>{{0, 4}, {1, 1}, {2, 1}}));
}

TEST(Schedule, AdmitsInOrderOfArrivalUpToTheNumberOfPlaces) {
  const Views views{Running(1, 5, 4, 1), Waiting(2, 3), Waiting(3, 3), Waiting(4, 3)};
  const Decision decision = Schedule(views, {64, 3, 16, 10});
  EXPECT_EQ(decision.work, (std::vector<Work>{{0, 1}, {1, 3}, {2, 3}}));
}

TEST(Schedule, ABigPromptIsNotOvertakenForLackOfPages) {
  const Views views{Running(1, 5, 4, 1), Waiting(2, 64), Waiting(3, 3)};
  const Decision decision = Schedule(views, {64, 8, 16, 3});
  EXPECT_EQ(decision.work, (std::vector<Work>{{0, 1}}));
}

TEST(Schedule, ReservesTheWholePromptForAPartlyScheduledNewcomer) {
  const Views views{Waiting(1, 32), Waiting(2, 16)};
  // Rows for 16 of the first and all of the second, pages for the first only.
  const Decision decision = Schedule(views, {40, 8, 16, 2});
  EXPECT_EQ(decision.work, (std::vector<Work>{{0, 32}}));
}

TEST(Schedule, TheYoungestGivesWayWhenPagesRunOut) {
  const Views views{Running(1, 17, 16, 1), Running(2, 9, 8, 1), Running(3, 9, 8, 1)};
  const Decision decision = Schedule(views, {64, 8, 16, 0});
  EXPECT_EQ(decision.preempt, (std::vector<size_t>{2}));
  EXPECT_EQ(decision.work, (std::vector<Work>{{0, 1}, {1, 1}}));
}

TEST(Schedule, ASequenceMayHaveToPreemptItself) {
  const Views views{Running(1, 9, 8, 1), Running(2, 17, 16, 1)};
  const Decision decision = Schedule(views, {64, 8, 16, 0});
  EXPECT_EQ(decision.preempt, (std::vector<size_t>{1}));
  EXPECT_EQ(decision.work, (std::vector<Work>{{0, 1}}));
}

TEST(Schedule, NobodyJoinsInAStepThatPreempts) {
  const Views views{Running(1, 17, 16, 1), Running(2, 33, 32, 2), Waiting(3, 2)};
  const Decision decision = Schedule(views, {64, 8, 16, 0});
  EXPECT_EQ(decision.preempt, (std::vector<size_t>{1}));
  EXPECT_EQ(decision.work, (std::vector<Work>{{0, 1}}));
}

/// Checks one decision against the rules that always hold.
void ExpectLawful(const Views& views, const ScheduleLimits& limits, const Decision& decision) {
  int64_t rows = 0;
  int64_t pages = limits.free_pages;
  for (const size_t i : decision.preempt) {
    EXPECT_TRUE(views[i].is_running);
    pages += views[i].pages;
  }
  int64_t running = 0;
  for (const SequenceView& view : views) running += view.is_running ? 1 : 0;
  running -= static_cast<int64_t>(decision.preempt.size());
  for (const Work& work : decision.work) {
    const SequenceView& view = views[work.index];
    EXPECT_EQ(std::ranges::count(decision.preempt, work.index), 0);
    EXPECT_GE(work.rows, 1);
    EXPECT_LE(view.computed + work.rows, view.tokens);
    rows += work.rows;
    pages -= PagesFor(view.computed + work.rows, limits.page_tokens) - view.pages;
    running += view.is_running ? 0 : 1;
  }
  EXPECT_LE(rows, limits.rows);
  EXPECT_GE(pages, 0);
  EXPECT_LE(running, limits.running);
  if (!views.empty()) {
    ASSERT_FALSE(decision.work.empty());
    EXPECT_EQ(std::ranges::count(decision.preempt, size_t{0}), 0) << "the oldest never gives way";
  }
}

TEST(Schedule, EverySimulatedRunFinishesWithinTheLimits) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const int64_t page_tokens = 4;
    const int64_t total = 6 + static_cast<int64_t>(random.Below(10));
    ScheduleLimits limits{1 + static_cast<int64_t>(random.Below(9)),
                          1 + static_cast<int64_t>(random.Below(4)), page_tokens, total};
    Views views;
    std::vector<int64_t> length;  // At which a sequence ends.
    for (RequestId id = 1; id <= 8; ++id) {
      const auto prompt = 1 + static_cast<int64_t>(random.Below(12));
      views.push_back(Waiting(id, prompt));
      length.push_back(prompt + 1 + static_cast<int64_t>(random.Below(10)));
    }
    int steps = 0;
    while (!views.empty()) {
      ASSERT_LT(++steps, 3000) << "seed " << seed;
      limits.free_pages = total;
      for (const SequenceView& view : views) limits.free_pages -= view.pages;
      const Decision decision = Schedule(views, limits);
      ExpectLawful(views, limits, decision);
      for (const size_t i : decision.preempt) views[i] = Waiting(views[i].id, views[i].tokens);
      for (const Work& work : decision.work) {
        SequenceView& view = views[work.index];
        view.is_running = true;
        view.computed += work.rows;
        view.pages = PagesFor(view.computed, page_tokens);
        if (view.computed == view.tokens) ++view.tokens;
      }
      for (size_t i = views.size(); i-- > 0;) {
        if (views[i].tokens < length[i]) continue;
        views.erase(views.begin() + static_cast<ptrdiff_t>(i));
        length.erase(length.begin() + static_cast<ptrdiff_t>(i));
      }
    }
  }
}

}  // namespace
}  // namespace tessera::engine
