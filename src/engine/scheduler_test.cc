// SPDX-License-Identifier: Apache-2.0
#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "base/random.h"
#include "engine/kv_pool.h"

namespace tessera::engine {
namespace {

using Views = std::vector<SequenceView>;
using Keys = std::vector<uint64_t>;

/// Page ids that no other sequence of the test has.
std::span<const PageId> OwnPages(int64_t count) {
  static std::deque<std::vector<PageId>> lists;
  static PageId next = 0;
  std::vector<PageId> pages;
  for (int64_t i = 0; i < count; ++i) pages.push_back(next++);
  return lists.emplace_back(std::move(pages));
}

SequenceView Waiting(RequestId id, int64_t tokens) {
  return {.id = id, .is_running = false, .tokens = tokens};
}
SequenceView Running(RequestId id, int64_t tokens, int64_t computed, int64_t pages) {
  return {.id = id,
          .is_running = true,
          .tokens = tokens,
          .computed = computed,
          .pages = OwnPages(pages)};
}

/// Schedule with the users of pages as the views say.
Decision Schedule(const Views& views, ScheduleLimits limits) {
  std::vector<int32_t> users;
  for (const SequenceView& view : views) {
    for (const PageId page : view.pages) {
      if (static_cast<size_t>(page) >= users.size()) users.resize(static_cast<size_t>(page) + 1);
      ++users[static_cast<size_t>(page)];
    }
  }
  limits.page_users = users;
  return engine::Schedule(views, limits);
}

TEST(Schedule, NothingToDoGivesNothing) {
  EXPECT_TRUE(Schedule(Views{}, {8, 4, 16, 10, {}}).work.empty());
}

TEST(Schedule, CutsAPromptIntoStepsOfMaxRows) {
  const Decision first = Schedule(Views{Waiting(1, 20)}, {8, 4, 16, 10, {}});
  EXPECT_EQ(first.work, (std::vector<Work>{{0, 8}}));
  const Decision last = Schedule(Views{Running(1, 20, 16, 1)}, {8, 4, 16, 9, {}});
  EXPECT_EQ(last.work, (std::vector<Work>{{0, 4}}));
}

TEST(Schedule, DecodingSequencesComeBeforeAnOlderPrompt) {
  const Views views{Running(1, 100, 8, 1), Running(2, 5, 4, 1), Running(3, 9, 8, 1)};
  const Decision decision = Schedule(views, {6, 4, 16, 10, {}});
  EXPECT_EQ(decision.work, (std::vector<Work>{{0, 4}, {1, 1}, {2, 1}}));
}

TEST(Schedule, AdmitsInOrderOfArrivalUpToTheNumberOfPlaces) {
  const Views views{Running(1, 5, 4, 1), Waiting(2, 3), Waiting(3, 3), Waiting(4, 3)};
  const Decision decision = Schedule(views, {64, 3, 16, 10, {}});
  EXPECT_EQ(decision.work, (std::vector<Work>{{0, 1}, {1, 3}, {2, 3}}));
}

TEST(Schedule, ABigPromptIsNotOvertakenForLackOfPages) {
  const Views views{Running(1, 5, 4, 1), Waiting(2, 64), Waiting(3, 3)};
  const Decision decision = Schedule(views, {64, 8, 16, 3, {}});
  EXPECT_EQ(decision.work, (std::vector<Work>{{0, 1}}));
}

TEST(Schedule, ReservesTheWholePromptForAPartlyScheduledNewcomer) {
  const Views views{Waiting(1, 32), Waiting(2, 16)};
  // Rows for 16 of the first and all of the second, pages for the first only.
  const Decision decision = Schedule(views, {40, 8, 16, 2, {}});
  EXPECT_EQ(decision.work, (std::vector<Work>{{0, 32}}));
}

TEST(Schedule, TheYoungestGivesWayWhenPagesRunOut) {
  const Views views{Running(1, 17, 16, 1), Running(2, 9, 8, 1), Running(3, 9, 8, 1)};
  const Decision decision = Schedule(views, {64, 8, 16, 0, {}});
  EXPECT_EQ(decision.preempt, (std::vector<size_t>{2}));
  EXPECT_EQ(decision.work, (std::vector<Work>{{0, 1}, {1, 1}}));
}

TEST(Schedule, ASequenceMayHaveToPreemptItself) {
  const Views views{Running(1, 9, 8, 1), Running(2, 17, 16, 1)};
  const Decision decision = Schedule(views, {64, 8, 16, 0, {}});
  EXPECT_EQ(decision.preempt, (std::vector<size_t>{1}));
  EXPECT_EQ(decision.work, (std::vector<Work>{{0, 1}}));
}

TEST(Schedule, NobodyJoinsInAStepThatPreempts) {
  const Views views{Running(1, 17, 16, 1), Running(2, 33, 32, 2), Waiting(3, 2)};
  const Decision decision = Schedule(views, {64, 8, 16, 0, {}});
  EXPECT_EQ(decision.preempt, (std::vector<size_t>{1}));
  EXPECT_EQ(decision.work, (std::vector<Work>{{0, 1}}));
}

TEST(Schedule, ANewcomerComputesOnlyWhatTheCacheLacks) {
  SequenceView view = Waiting(1, 40);
  view.computed = 35;
  view.shared_pages = 2;
  // Of its three pages two are there and used by somebody: one free page is enough.
  EXPECT_EQ(Schedule({view}, {64, 4, 16, 1, {}}).work, (std::vector<Work>{{0, 5}}));
  // Nobody uses them: using them takes them from those that can be given up.
  view.idle_pages = 2;
  const Views views{Running(1, 5, 4, 1), view};
  EXPECT_EQ(Schedule(views, {64, 4, 16, 2, {}}).work, (std::vector<Work>{{0, 1}}));
  EXPECT_EQ(Schedule(views, {64, 4, 16, 3, {}}).work, (std::vector<Work>{{0, 1}, {1, 5}}));
}

TEST(Schedule, ANewcomerIsHeldWhileAnOlderOneComputesItsNextPage) {
  const Keys keys{1, 2, 3}, other{1, 7, 8};
  SequenceView first = Waiting(1, 50), second = Waiting(2, 50), third = Waiting(3, 50);
  first.page_keys = second.page_keys = keys;
  third.page_keys = other;
  const ScheduleLimits limits{200, 8, 16, 50, {}};
  // All begin with page 1.
  EXPECT_EQ(Schedule({first, second, third}, limits).work, (std::vector<Work>{{0, 50}}));
  // The first page is there: the third goes on with a page of its own.
  second.computed = third.computed = 16;
  second.shared_pages = third.shared_pages = 1;
  EXPECT_EQ(Schedule({first, second, third}, limits).work, (std::vector<Work>{{0, 50}, {2, 34}}));
  // All that they share is there.
  second.computed = 48;
  second.shared_pages = 3;
  EXPECT_EQ(Schedule({first, second}, limits).work, (std::vector<Work>{{0, 50}, {1, 2}}));
  // Those who do not share are held by nobody and hold nobody.
  second = Waiting(2, 50);
  EXPECT_EQ(Schedule({first, second}, limits).work, (std::vector<Work>{{0, 50}, {1, 50}}));
  EXPECT_EQ(Schedule({second, first}, limits).work, (std::vector<Work>{{0, 50}, {1, 50}}));
}

TEST(Schedule, OnlyOlderSequencesThatComputeInTheStepHold) {
  const Keys keys{1, 2};
  SequenceView old = Waiting(1, 40), young = Running(2, 40, 8, 1);
  old.page_keys = young.page_keys = keys;
  EXPECT_EQ(Schedule({old, young}, {64, 8, 16, 9, {}}).work, (std::vector<Work>{{0, 32}, {1, 32}}));
  // The first has passed the page that the second wants (evicted since): nothing to wait for.
  SequenceView far = Running(1, 40, 39, 3), newcomer = Waiting(2, 40);
  far.page_keys = newcomer.page_keys = keys;
  EXPECT_EQ(Schedule({far, newcomer}, {64, 8, 16, 9, {}}).work,
            (std::vector<Work>{{0, 1}, {1, 40}}));
}

TEST(Schedule, AHeldNewcomerKeepsItsPlaceAndItsPages) {
  const Keys keys{1, 2};
  SequenceView first = Running(1, 40, 0, 0), second = Waiting(2, 40);
  first.page_keys = second.page_keys = keys;
  const Views views{first, second, Waiting(3, 5)};
  EXPECT_EQ(Schedule(views, {64, 2, 16, 50, {}}).work, (std::vector<Work>{{0, 40}}));
  EXPECT_EQ(Schedule(views, {64, 3, 16, 6, {}}).work, (std::vector<Work>{{0, 40}}));
  EXPECT_EQ(Schedule(views, {64, 3, 16, 7, {}}).work, (std::vector<Work>{{0, 40}, {2, 5}}));
}

TEST(Schedule, ASharedPageIsBackOnlyWithItsLastUser) {
  const std::vector<PageId> oldest{0, 1}, middle{0, 2}, youngest{0, 2};
  const auto view = [](RequestId id, std::span<const PageId> pages) {
    SequenceView v = Running(id, 9, 8, 0);
    v.pages = pages;
    return v;
  };
  // Pages of 4: each needs a third page, none is free. The youngest's pages are all shared, so the
  // middle one has to go as well, which frees page 2.
  const Views views{view(1, oldest), view(2, middle), view(3, youngest)};
  const Decision decision = Schedule(views, {64, 8, 4, 0, {}});
  EXPECT_EQ(decision.preempt, (std::vector<size_t>{2, 1}));
  EXPECT_EQ(decision.work, (std::vector<Work>{{0, 1}}));
}

TEST(Schedule, PromptsShareAStep) {
  // Half for the first, and the short one is done at once.
  const Views views{Running(1, 4000, 100, 7), Running(2, 3000, 0, 0), Waiting(3, 20)};
  const Decision decision = Schedule(views, {100, 8, 16, 500, {}});
  EXPECT_EQ(decision.work, (std::vector<Work>{{0, 50}, {1, 30}, {2, 20}}));
  // One row at least for each, in order.
  EXPECT_EQ(Schedule(views, {1, 8, 16, 500, {}}).work, (std::vector<Work>{{0, 1}}));
}

TEST(Schedule, PromptsAreBoundedOnlyWhileSomebodyDecodes) {
  ScheduleLimits limits{512, 8, 16, 500, {}};
  limits.prompt_rows = 40;
  const Views both{Running(1, 4000, 100, 7), Running(2, 5, 4, 1)};
  EXPECT_EQ(Schedule(both, limits).work, (std::vector<Work>{{0, 40}, {1, 1}}));
  EXPECT_EQ(Schedule({both[0]}, limits).work, (std::vector<Work>{{0, 512}}));
}

TEST(Schedule, APriorityTakesThePlaceOfALowerOne) {
  SequenceView urgent = Waiting(9, 10), low = Running(1, 5, 4, 1), lower = Running(2, 9, 8, 1);
  urgent.priority = -1;
  low.priority = 0;
  lower.priority = 3;
  // The last of the lower ones gives its place.
  const Decision decision = Schedule({urgent, low, lower}, {64, 2, 16, 5, {}});
  EXPECT_EQ(decision.preempt, (std::vector<size_t>{2}));
  EXPECT_EQ(decision.work, (std::vector<Work>{{0, 10}, {1, 1}}));
  // Equals do not.
  urgent.priority = low.priority = lower.priority = 0;
  EXPECT_TRUE(Schedule({urgent, low, lower}, {64, 2, 16, 5, {}}).preempt.empty());
}

TEST(Schedule, APriorityTakesPagesOnlyIfTheyAreEnough) {
  SequenceView urgent = Waiting(9, 64), low = Running(1, 20, 19, 2);
  urgent.priority = -1;
  EXPECT_EQ(Schedule({urgent, low}, {64, 4, 16, 2, {}}).preempt, (std::vector<size_t>{1}));
  const Decision kept = Schedule({urgent, low}, {64, 4, 16, 1, {}});
  EXPECT_TRUE(kept.preempt.empty());
  EXPECT_EQ(kept.work, (std::vector<Work>{{1, 1}}));
}

TEST(Schedule, NobodySharesPagesThatOneStepTakesAway) {
  SequenceView sharer = Waiting(1, 192), other = Waiting(2, 192), victim = Running(3, 170, 160, 10);
  sharer.computed = 160;
  sharer.shared_pages = 10;  // The victim's.
  victim.priority = 10;
  // Two pages for the sharer leave eight of ten, and the victim's ten must stay.
  const Decision before = Schedule({sharer, other, victim}, {512, 8, 16, 10, {}});
  EXPECT_TRUE(before.preempt.empty());
  EXPECT_EQ(before.work, (std::vector<Work>{{0, 32}, {2, 10}}));
  // The other way round they are taken, and what is free then is not enough for both.
  const Decision after = Schedule({other, sharer, victim}, {512, 8, 16, 10, {}});
  EXPECT_EQ(after.preempt, (std::vector<size_t>{2}));
  EXPECT_EQ(after.work, (std::vector<Work>{{0, 192}}));
}

TEST(Schedule, DraftsTakeWhatIsLeft) {
  SequenceView first = Running(1, 10, 9, 1), second = Running(2, 16, 15, 1);
  first.drafts = second.drafts = 4;
  // No page for the second's: they would lie in the next one.
  EXPECT_EQ(Schedule({first, second}, {64, 4, 16, 0, {}}).work,
            (std::vector<Work>{{0, 5}, {1, 1}}));
  EXPECT_EQ(Schedule({first, second}, {64, 4, 16, 1, {}}).work,
            (std::vector<Work>{{0, 5}, {1, 5}}));
  EXPECT_EQ(Schedule({first, second}, {5, 4, 16, 1, {}}).work, (std::vector<Work>{{0, 4}, {1, 1}}));
  // Beside a prompt there are none: the step is long enough.
  EXPECT_EQ(Schedule({first, Waiting(3, 7)}, {64, 4, 16, 5, {}}).work,
            (std::vector<Work>{{0, 1}, {1, 7}}));
}

TEST(Schedule, ThoseThatWaitForOthersMakeRoomWhenNothingElseCanRun) {
  SequenceView reported = Running(1, 32, 32, 2), other = Running(2, 30, 30, 2);
  reported.is_ready = other.is_ready = false;
  const Views views{reported, Waiting(3, 40), other};
  const Decision decision = Schedule(views, {64, 3, 16, 1, {}});
  EXPECT_EQ(decision.preempt, (std::vector<size_t>{2}));
  EXPECT_EQ(decision.work, (std::vector<Work>{{1, 40}}));
}

/// Checks one decision against the rules that always hold.
void ExpectLawful(const Views& views, const ScheduleLimits& limits, const Decision& decision) {
  int64_t rows = 0;
  int64_t pages = limits.free_pages;
  for (const size_t i : decision.preempt) {
    EXPECT_TRUE(views[i].is_running);
    pages += std::ssize(views[i].pages);
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
    pages -= PagesFor(view.computed + work.rows, limits.page_tokens) - std::ssize(view.pages);
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
                          1 + static_cast<int64_t>(random.Below(4)),
                          page_tokens,
                          total,
                          {}};
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
      for (const SequenceView& view : views) limits.free_pages -= std::ssize(view.pages);
      const Decision decision = Schedule(views, limits);
      ExpectLawful(views, limits, decision);
      for (const size_t i : decision.preempt) views[i] = Waiting(views[i].id, views[i].tokens);
      for (const Work& work : decision.work) {
        SequenceView& view = views[work.index];
        view.is_running = true;
        view.computed += work.rows;
        view.pages = OwnPages(PagesFor(view.computed, page_tokens));
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
