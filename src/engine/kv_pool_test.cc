// SPDX-License-Identifier: Apache-2.0
#include "engine/kv_pool.h"

#include <gtest/gtest.h>

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

TEST(KvPool, LowestFreePageComesFirst) {
  KvPool pool(4);
  std::vector<PageId> first, second;
  ASSERT_TRUE(pool.TryTake(2, &first));
  ASSERT_TRUE(pool.TryTake(2, &second));
  pool.Return(&first);
  EXPECT_TRUE(first.empty());
  std::vector<PageId> again;
  ASSERT_TRUE(pool.TryTake(2, &again));
  EXPECT_EQ(again, (std::vector<PageId>{0, 1}));
}

TEST(KvPoolDeathTest, ReturningAPageTwiceIsABug) {
  KvPool pool(2);
  std::vector<PageId> pages;
  ASSERT_TRUE(pool.TryTake(1, &pages));
  std::vector<PageId> copy = pages;
  pool.Return(&pages);
  EXPECT_DEATH(pool.Return(&copy), "check failed");
}

TEST(KvPool, StaysWholeUnderRandomUse) {
  KvPool pool(37);
  Random random(7);
  std::vector<std::vector<PageId>> owners(8);
  for (int i = 0; i < 2000; ++i) {
    std::vector<PageId>& owner = owners[random.Below(owners.size())];
    if (random.Below(3) == 0) {
      pool.Return(&owner);
    } else {
      const auto count = static_cast<int64_t>(random.Below(6));
      const bool fits = count <= pool.free();
      EXPECT_EQ(pool.TryTake(count, &owner), fits);
    }
    pool.CheckIntegrity();
  }
}

TEST(PagesFor, RoundsUp) {
  EXPECT_EQ(PagesFor(0, 16), 0);
  EXPECT_EQ(PagesFor(1, 16), 1);
  EXPECT_EQ(PagesFor(16, 16), 1);
  EXPECT_EQ(PagesFor(17, 16), 2);
}

}  // namespace
}  // namespace tessera::engine
