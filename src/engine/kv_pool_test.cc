// SPDX-License-Identifier: Apache-2.0
#include "engine/kv_pool.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/random.h"

namespace tessera::engine {
namespace {

TEST(KvPool, GivesAllPagesAndNotOneMore) {
  KvPool pool(4);
  std::vector<PageId> pages;
  EXPECT_TRUE(pool.TryTake(4, &pages));
  EXPECT_EQ(pages, (std::vector<PageId>{0, 1, 2, 3}));
  EXPECT_FALSE(pool.TryTake(1, &pages));
  EXPECT_EQ(pages.size(), 4u);
  EXPECT_TRUE(pool.TryTake(0, &pages));
  pool.CheckIntegrity();
}

TEST(KvPool, FailedTakeChangesNothing) {
  KvPool pool(3);
  std::vector<PageId> pages;
  ASSERT_TRUE(pool.TryTake(1, &pages));
  EXPECT_FALSE(pool.TryTake(3, &pages));
  EXPECT_EQ(pool.free(), 2);
  EXPECT_EQ(pages.size(), 1u);
}

void Return(KvPool* pool, std::vector<PageId>* pages) {
  for (const PageId page : *pages) pool->RemoveUser(page);
  pages->clear();
}

TEST(KvPool, LowestFreePageComesFirst) {
  KvPool pool(4);
  std::vector<PageId> first, second;
  ASSERT_TRUE(pool.TryTake(2, &first));
  ASSERT_TRUE(pool.TryTake(2, &second));
  Return(&pool, &first);
  std::vector<PageId> again;
  ASSERT_TRUE(pool.TryTake(2, &again));
  EXPECT_EQ(again, (std::vector<PageId>{0, 1}));
}

TEST(KvPool, APageIsBackWithItsLastUser) {
  KvPool pool(2);
  std::vector<PageId> pages;
  ASSERT_TRUE(pool.TryTake(1, &pages));
  pool.AddUser(pages[0]);
  EXPECT_EQ(pool.users()[0], 2);
  pool.RemoveUser(pages[0]);
  EXPECT_EQ(pool.used(), 1);
  pool.RemoveUser(pages[0]);
  EXPECT_EQ(pool.free(), 2);
}

TEST(KvPool, ACachedPageIsIdleUntilItIsUsedAgainOrForgotten) {
  KvPool pool(2);
  std::vector<PageId> pages;
  ASSERT_TRUE(pool.TryTake(1, &pages));
  pool.SetCached(0);
  EXPECT_EQ(pool.used(), 1);
  pool.RemoveUser(0);
  EXPECT_EQ(pool.idle(), 1);
  EXPECT_EQ(pool.free(), 1);
  EXPECT_FALSE(pool.TryTake(2, &pages)) << "an idle page is not given out";
  pool.AddUser(0);
  EXPECT_EQ(pool.idle(), 0);
  pool.Uncache(0);
  EXPECT_EQ(pool.used(), 1);
  pool.RemoveUser(0);
  EXPECT_EQ(pool.free(), 2);
  pool.CheckIntegrity();
}

TEST(KvPoolDeathTest, WhatNobodyHoldsCannotBeReturnedSharedOrStored) {
  KvPool pool(2);
  std::vector<PageId> pages;
  ASSERT_TRUE(pool.TryTake(1, &pages));
  pool.RemoveUser(0);
  EXPECT_DEATH(pool.RemoveUser(0), "check failed");
  EXPECT_DEATH(pool.AddUser(0), "check failed");
  EXPECT_DEATH(pool.SetCached(0), "check failed");
  EXPECT_DEATH(pool.Uncache(0), "check failed");
  EXPECT_DEATH(pool.RemoveUser(2), "check failed");
}

TEST(KvPool, StaysWholeUnderRandomUse) {
  KvPool pool(37);
  Random random(7);
  std::vector<std::vector<PageId>> owners(8);
  int failed = 0;
  for (int i = 0; i < 5000; ++i) {
    std::vector<PageId>& owner = owners[random.Below(owners.size())];
    const auto page = static_cast<PageId>(random.Below(37));
    const bool is_used = pool.users()[static_cast<size_t>(page)] > 0;
    switch (random.Below(5)) {
      case 0:
        Return(&pool, &owner);
        break;
      case 1:
        if (is_used && !pool.is_cached(page)) pool.SetCached(page);
        break;
      case 2:
        if (pool.is_cached(page)) pool.Uncache(page);
        break;
      case 3:
        if (!is_used && !pool.is_cached(page)) break;
        pool.AddUser(page);
        owner.push_back(page);
        break;
      default: {
        const auto count = static_cast<int64_t>(random.Below(6));
        const bool fits = count <= pool.free();
        failed += fits ? 0 : 1;
        EXPECT_EQ(pool.TryTake(count, &owner), fits);
      }
    }
    pool.CheckIntegrity();
    int64_t held = 0;
    for (const auto& pages : owners) held += std::ssize(pages);
    EXPECT_EQ(std::accumulate(pool.users().begin(), pool.users().end(), int64_t{0}), held);
  }
  EXPECT_GT(failed, 0);
}

TEST(PagesFor, RoundsUp) {
  EXPECT_EQ(PagesFor(0, 16), 0);
  EXPECT_EQ(PagesFor(1, 16), 1);
  EXPECT_EQ(PagesFor(16, 16), 1);
  EXPECT_EQ(PagesFor(17, 16), 2);
}

}  // namespace
}  // namespace tessera::engine
