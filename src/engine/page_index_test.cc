// SPDX-License-Identifier: Apache-2.0
#include "engine/page_index.h"

#include <gtest/gtest.h>

namespace tessera::engine {
namespace {

PageHash Hash(int i) {
  return RootHash(std::to_string(i));
}

TEST(PageIndex, CountsWhatIsThere) {
  PageIndex index(100, 10);
  index.Add(Hash(1), 30);
  index.Add(Hash(2), 20);
  index.Add(Hash(1), 10);
  EXPECT_EQ(index.pages(), 2);
  EXPECT_EQ(index.bytes(), 30);
  index.Remove(Hash(1));
  index.Remove(Hash(3));
  EXPECT_TRUE(index.Contains(Hash(2)));
  EXPECT_FALSE(index.Contains(Hash(1)));
  EXPECT_EQ(index.bytes(), 20);
}

TEST(PageIndex, WhatWasUsedLongestAgoGoesFirst) {
  PageIndex index(30, 10);
  for (int i = 0; i < 3; ++i) index.Add(Hash(i), 10);
  EXPECT_EQ(index.TakeExcess(0), std::nullopt) << "all of the quota may be used";
  index.Touch(Hash(0));
  index.Touch(Hash(7));
  EXPECT_EQ(index.TakeExcess(1), Hash(1));
  EXPECT_EQ(index.TakeExcess(10), std::nullopt);
  EXPECT_EQ(index.TakeExcess(11), Hash(2));
  EXPECT_EQ(index.TakeExcess(30), Hash(0));
  EXPECT_EQ(index.TakeExcess(1000), std::nullopt) << "nothing is left";
}

TEST(PageIndex, TheNumberOfPagesIsBoundedToo) {
  PageIndex index(1000, 3);
  for (int i = 0; i < 2; ++i) index.Add(Hash(i), 1);
  EXPECT_EQ(index.TakeExcess(1), std::nullopt);
  index.Add(Hash(2), 1);
  EXPECT_EQ(index.TakeExcess(1), Hash(0));
  EXPECT_EQ(index.TakeExcess(1), std::nullopt);
}

}  // namespace
}  // namespace tessera::engine
