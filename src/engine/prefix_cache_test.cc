// SPDX-License-Identifier: Apache-2.0
#include "engine/prefix_cache.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "engine/limits.h"

namespace tessera::engine {
namespace {

using Tokens = std::vector<TokenId>;
using Reason = CacheMiss::Reason;
constexpr int64_t kPage = 4;

Tokens Count(TokenId from, size_t length) {
  Tokens tokens(length);
  for (size_t i = 0; i < length; ++i) tokens[i] = from + static_cast<TokenId>(i);
  return tokens;
}

struct Fixture {
  explicit Fixture(int64_t pages, int64_t idle_max = 1000)
      : pool(pages), cache(&pool, kPage, idle_max) {}

  /// A sequence of `tokens`, all computed, still held.
  SequencePages Compute(const Tokens& tokens, bool with_rest = false) {
    SequencePages pages;
    cache.Share(tokens, &pages);
    (void)cache.TakeTail(tokens, &pages);
    EXPECT_TRUE(cache.TryTake(PagesFor(std::ssize(tokens), kPage) - std::ssize(pages.ids), &pages));
    cache.Store(tokens, with_rest, &pages);
    cache.CheckIntegrity();
    return pages;
  }
  /// A sequence that has come and gone.
  void Leave(const Tokens& tokens) {
    SequencePages pages = Compute(tokens, /*with_rest=*/true);
    cache.Release(&pages);
    cache.CheckIntegrity();
  }
  int64_t Found(const Tokens& tokens) const { return cache.Find(tokens).tokens; }

  KvPool pool;
  PrefixCache cache;
};

TEST(PrefixCache, FindsTheLongestBeginningButNeverTheLastToken) {
  Fixture f(10);
  f.Leave(Count(0, 10));
  EXPECT_EQ(f.pool.used(), 0);
  EXPECT_EQ(f.cache.pages(), 3);
  EXPECT_EQ(f.Found(Count(0, 20)), 10);
  EXPECT_EQ(f.Found(Count(0, 10)), 9);
  EXPECT_EQ(f.Found(Count(0, 9)), 8);
  EXPECT_EQ(f.Found(Count(0, 8)), 7) << "the whole second page would be all of it";
  EXPECT_EQ(f.Found(Count(0, 1)), 0);
  EXPECT_EQ(f.Found({0, 1, 2, 3, 4, 99, 6}), 5);
  EXPECT_EQ(f.Found({99}), 0);
  const PrefixMatch match = f.cache.Find(Count(0, 9));
  EXPECT_EQ(match.pages, 2);
  EXPECT_EQ(match.idle_pages, 2);
}

TEST(PrefixCache, WholePagesAreSharedAndTheRestIsCopied) {
  Fixture f(10);
  SequencePages first = f.Compute(Count(0, 10), /*with_rest=*/true);
  SequencePages second;
  const Tokens tokens = {0, 1, 2, 3, 4, 5, 6, 7, 8, 99};
  f.cache.Share(tokens, &second);
  EXPECT_EQ(second.ids, (std::vector<PageId>{first.ids[0], first.ids[1]}));
  EXPECT_EQ(f.pool.users()[0], 2);
  const auto tail = f.cache.TakeTail(tokens, &second);
  ASSERT_TRUE(tail.has_value());
  EXPECT_EQ(tail->from, first.ids[2]);
  EXPECT_EQ(tail->to, second.ids[2]);
  EXPECT_EQ(tail->tokens, 1);
  f.cache.CheckIntegrity();
  f.cache.Release(&first);
  f.cache.CheckIntegrity();
  EXPECT_EQ(f.pool.used(), 3) << "the second's three";
  f.cache.Release(&second);
  EXPECT_EQ(f.pool.idle(), 3) << "its own page was never stored";
}

TEST(PrefixCache, ABegunPageGoesOnAndReplacesItsOwnBeginning) {
  Fixture f(10);
  SequencePages pages = f.Compute(Count(0, 6), /*with_rest=*/true);
  EXPECT_EQ(f.cache.pages(), 2);
  EXPECT_EQ(f.Found(Count(0, 20)), 6);
  f.cache.Store(Count(0, 7), /*with_rest=*/true, &pages);
  EXPECT_EQ(f.cache.pages(), 2);
  EXPECT_EQ(f.Found(Count(0, 20)), 7);
  f.cache.Store(Count(0, 8), /*with_rest=*/false, &pages);
  EXPECT_EQ(f.cache.pages(), 2);
  EXPECT_EQ(pages.stored, 2);
  EXPECT_EQ(f.cache.Find(Count(0, 20)).pages, 2);
  f.cache.CheckIntegrity();
  f.cache.Release(&pages);
}

TEST(PrefixCache, PagesComputedTwiceBecomeOne) {
  Fixture f(10);
  SequencePages first, second;
  ASSERT_TRUE(f.cache.TryTake(3, &first));
  ASSERT_TRUE(f.cache.TryTake(3, &second));
  f.cache.Store(Count(0, 9), /*with_rest=*/true, &first);
  f.cache.Store(Count(0, 10), /*with_rest=*/false, &second);
  EXPECT_EQ(second.ids[0], first.ids[0]);
  EXPECT_EQ(second.ids[1], first.ids[1]);
  EXPECT_NE(second.ids[2], first.ids[2]) << "unfinished pages stay their owners'";
  EXPECT_EQ(f.pool.used(), 4);
  // The longer one replaces the other's beginning, which its owner keeps writing.
  f.cache.Store(Count(0, 10), /*with_rest=*/true, &second);
  EXPECT_EQ(f.Found(Count(0, 20)), 10);
  f.cache.CheckIntegrity();
  f.cache.Release(&first);
  f.cache.CheckIntegrity();
  EXPECT_EQ(f.pool.used(), 3);
  f.cache.Release(&second);
  EXPECT_EQ(f.pool.idle(), 3);
}

TEST(PrefixCache, GivesUpTheLeastRecentlyUsedLeafFirst) {
  Fixture f(6);
  f.Leave(Count(0, 8));    // Pages A, B.
  f.Leave(Count(100, 8));  // Pages C, D.
  f.Leave(Count(0, 5));    // A is used again.
  SequencePages pages;
  ASSERT_TRUE(f.cache.TryTake(3, &pages));  // Two are free, B goes: idle longest, a leaf.
  EXPECT_EQ(f.cache.evictions(), 1);
  EXPECT_EQ(f.Found(Count(0, 20)), 4);
  EXPECT_EQ(f.Found(Count(100, 20)), 8);
  ASSERT_TRUE(f.cache.TryTake(1, &pages));  // D before C, which has it below, and both before A.
  EXPECT_EQ(f.Found(Count(100, 20)), 4);
  ASSERT_TRUE(f.cache.TryTake(1, &pages));
  EXPECT_EQ(f.Found(Count(100, 20)), 0);
  EXPECT_EQ(f.Found(Count(0, 20)), 4);
  ASSERT_TRUE(f.cache.TryTake(1, &pages));
  EXPECT_FALSE(f.cache.TryTake(1, &pages));
  EXPECT_EQ(f.cache.pages(), 0);
  f.cache.CheckIntegrity();
  f.cache.Release(&pages);
  EXPECT_EQ(f.pool.free(), 6);
}

TEST(PrefixCache, UsedPagesAreNotGivenUp) {
  Fixture f(4);
  SequencePages held = f.Compute(Count(0, 8));
  f.Leave(Count(100, 8));
  EXPECT_EQ(f.cache.available(), 2);
  SequencePages pages;
  EXPECT_FALSE(f.cache.TryTake(3, &pages));
  EXPECT_TRUE(pages.ids.empty());
  EXPECT_EQ(f.cache.evictions(), 0) << "a refused request costs nobody anything";
  EXPECT_TRUE(f.cache.TryTake(2, &pages));
  EXPECT_EQ(f.Found(Count(0, 20)), 8);
  f.cache.Release(&pages);
  f.cache.Release(&held);
}

TEST(PrefixCache, ATailIsCopiedOnlyWhenAPageIsLeftForIt) {
  Fixture f(2);
  f.Leave(Count(0, 8));
  SequencePages pages;
  f.cache.Share(Count(0, 8), &pages);
  EXPECT_EQ(pages.ids.size(), 1u);
  // The only page that could be taken is the one to copy from.
  EXPECT_FALSE(f.cache.TakeTail(Count(0, 8), &pages).has_value());
  f.cache.CheckIntegrity();
  EXPECT_TRUE(f.cache.TryTake(1, &pages));
  f.cache.Release(&pages);
}

TEST(PrefixCache, KeepsNoMoreIdlePagesThanItMay) {
  for (const int64_t limit : {0, 1, 2, 3, 4}) {
    Fixture f(10, limit);
    f.Leave(Count(0, 12));
    EXPECT_EQ(f.pool.idle(), std::min<int64_t>(limit, 3)) << limit;
    f.Leave(Count(100, 8));
    EXPECT_EQ(f.pool.idle(), std::min<int64_t>(limit, 5)) << limit;
    EXPECT_EQ(f.Found(Count(100, 20)), 4 * std::min<int64_t>(limit, 2)) << "the younger stay";
  }
}

TEST(PrefixCache, SaysWhyAPromptMissed) {
  Fixture f(4);
  const auto miss = [&](const Tokens& tokens) {
    const CacheMiss found = f.cache.Find(tokens).miss;
    return std::pair(found.reason, found.position);
  };
  EXPECT_EQ(miss(Count(0, 9)), std::pair(Reason::kNeverStored, int64_t{0}));
  f.Leave(Count(0, 10));
  EXPECT_EQ(miss(Count(0, 11)), std::pair(Reason::kNone, int64_t{0}));
  EXPECT_EQ(miss(Count(0, 12)), std::pair(Reason::kNeverStored, int64_t{10}));
  EXPECT_EQ(miss({0, 1, 9, 9}), std::pair(Reason::kDiffers, int64_t{2}));
  EXPECT_EQ(miss({0, 1, 2, 3, 9, 9}), std::pair(Reason::kDiffers, int64_t{4}));
  EXPECT_EQ(miss({9, 9}), std::pair(Reason::kNeverStored, int64_t{0}));
  f.Leave(Count(100, 16));  // Takes the whole pool.
  EXPECT_EQ(miss(Count(0, 10)), std::pair(Reason::kEvicted, int64_t{0}));
}

TEST(PrefixCache, RemembersTheLastEvictionsOnly) {
  Fixture f(1);
  for (int64_t i = 0; i <= kEvictedPagesRemembered; ++i)
    f.Leave(Count(static_cast<TokenId>(1000 * i), 4));
  const auto reason = [&](int64_t i) {
    return f.cache.Find(Count(static_cast<TokenId>(1000 * i), 5)).miss.reason;
  };
  // The last one is still there, so n were given up; one more pushes the first out.
  EXPECT_EQ(reason(0), Reason::kEvicted);
  f.Leave(Count(-5, 4));
  EXPECT_EQ(reason(0), Reason::kNeverStored);
  EXPECT_EQ(reason(1), Reason::kEvicted);
  EXPECT_EQ(reason(kEvictedPagesRemembered), Reason::kEvicted);
}

/// Every page carries the tokens written to it, as KV memory would: what is shared, copied, merged
/// and given up must still hold the tokens that its sequence means.
TEST(PrefixCache, ContentsStayRightUnderRandomUse) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    constexpr int64_t kPages = 24;
    Fixture f(kPages, static_cast<int64_t>(random.Below(kPages + 1)));
    struct Running {
      Tokens tokens;  // All computed.
      SequencePages pages;
    };
    std::vector<Running> running;
    std::vector<TokenId> memory(kPages * kPage, -1);
    const auto cell = [&](const SequencePages& pages, size_t position) -> TokenId& {
      const auto page = static_cast<size_t>(pages.ids[position / kPage]);
      return memory[page * kPage + position % kPage];
    };
    int64_t shared = 0;
    for (int i = 0; i < 1500; ++i) {
      const bool begin = running.empty() || (running.size() < 5 && random.Below(3) == 0);
      if (begin) {
        Running r;
        for (size_t n = 1 + random.Below(14); n > 0; --n)
          r.tokens.push_back(static_cast<TokenId>(random.Below(2)));
        const PrefixMatch match = f.cache.Find(r.tokens);
        f.cache.Share(r.tokens, &r.pages);
        int64_t computed = r.pages.stored * kPage;
        if (const auto tail = f.cache.TakeTail(r.tokens, &r.pages)) {
          std::copy_n(memory.begin() + tail->from * kPage, kPage,
                      memory.begin() + tail->to * kPage);
          computed += tail->tokens;
        }
        ASSERT_LE(computed, match.tokens);
        shared += computed;
        r.tokens.resize(static_cast<size_t>(std::max<int64_t>(computed, 1)));
        if (computed == 0 && !f.cache.TryTake(1, &r.pages)) continue;
        if (computed == 0) cell(r.pages, 0) = r.tokens[0];
        running.push_back(std::move(r));
      } else {
        const size_t at = random.Below(running.size());
        Running& r = running[at];
        if (random.Below(4) == 0) {
          f.cache.Store(r.tokens, random.Below(2) == 0, &r.pages);
          f.cache.Release(&r.pages);
          running.erase(running.begin() + static_cast<ptrdiff_t>(at));
        } else if (std::ssize(r.tokens) < std::ssize(r.pages.ids) * kPage ||
                   f.cache.TryTake(1, &r.pages)) {
          r.tokens.push_back(static_cast<TokenId>(random.Below(2)));
          cell(r.pages, r.tokens.size() - 1) = r.tokens.back();
          f.cache.Store(r.tokens, random.Below(3) == 0, &r.pages);
        }
      }
      f.cache.CheckIntegrity();
      for (const Running& r : running)
        for (size_t p = 0; p < r.tokens.size(); ++p) ASSERT_EQ(cell(r.pages, p), r.tokens[p]);
    }
    EXPECT_GT(shared, 100);
    for (Running& r : running) f.cache.Release(&r.pages);
    EXPECT_EQ(f.pool.used(), 0);
  }
}

}  // namespace
}  // namespace tessera::engine
