// SPDX-License-Identifier: Apache-2.0
#include "hub/range_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tessera::hub {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RangeSet, JoinsOverlapsAndNeighbours) {
  RangeSet set;
  set.Add({10, 20});
  set.Add({30, 40});
  set.Add({20, 25});
  EXPECT_THAT(set.Ranges(), ElementsAre(ByteRange{10, 25}, ByteRange{30, 40}));
  set.Add({24, 30});
  EXPECT_THAT(set.Ranges(), ElementsAre(ByteRange{10, 40}));
  EXPECT_EQ(set.bytes(), 30u);
  EXPECT_EQ(set.end(), 40u);
  EXPECT_EQ(set.ContiguousEnd(), 0u);
  set.Add({0, 10});
  EXPECT_EQ(set.ContiguousEnd(), 40u);
}

TEST(RangeSet, EmptyRangesChangeNothing) {
  RangeSet set;
  set.Add({5, 5});
  set.Add({7, 3});
  EXPECT_EQ(set.bytes(), 0u);
  EXPECT_THAT(set.Missing(4), ElementsAre(ByteRange{0, 4}));
  EXPECT_THAT(set.Missing(0), IsEmpty());
}

TEST(RangeSet, IsWhatAListOfBytesWouldBe) {
  constexpr uint64_t kSize = 64;
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    RangeSet set;
    std::vector<bool> bytes(kSize);
    for (int i = 0; i < 12; ++i) {
      const uint64_t begin = random() % kSize;
      const uint64_t end = begin + random() % (kSize - begin + 1);
      set.Add({begin, end});
      for (uint64_t at = begin; at < end; ++at) bytes[at] = true;
    }
    std::vector<bool> missing(kSize);
    for (const ByteRange& range : set.Missing(kSize))
      for (uint64_t at = range.begin; at < range.end; ++at) missing[at] = true;
    uint64_t count = 0;
    for (uint64_t at = 0; at < kSize; ++at) {
      EXPECT_NE(bytes[at], missing[at]) << "round " << round << " byte " << at;
      count += bytes[at] ? 1 : 0;
    }
    EXPECT_EQ(set.bytes(), count) << round;
  }
}

}  // namespace
}  // namespace tessera::hub
