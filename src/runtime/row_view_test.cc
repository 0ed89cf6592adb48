// SPDX-License-Identifier: Apache-2.0
#include "runtime/row_view.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/limits.h"

namespace tessera::runtime {
namespace {

const bundle::Dims kDims = {64, 100, 2, 6, 2, 16, 4096, 32};
constexpr int64_t kMaxRows = 4096;

RowView ViewOf(std::initializer_list<RowRange> ranges, int workers, int64_t macs_per_row,
               bool allowed = true) {
  RowView view(kDims, kMaxRows, {allowed, macs_per_row});
  for (const RowRange& range : ranges) view.Add(range);
  view.Plan(workers, true);
  return view;
}

std::vector<Strip> AllStrips(const RowView& view, int workers) {
  std::vector<Strip> strips;
  for (int owner = 0; owner < workers; ++owner)
    for (const Strip& strip : view.StripsOf(owner)) strips.push_back(strip);
  std::sort(strips.begin(), strips.end(),
            [](const Strip& a, const Strip& b) { return a.row < b.row; });
  return strips;
}

TEST(RowView, RangesFollowEachOther) {
  const RowView view = ViewOf({{.source = 7, .rows = 3}, {.source = 20, .rows = 5}}, 1, 1);
  EXPECT_EQ(view.rows(), 8);
  ASSERT_EQ(view.ranges().size(), 2u);
  EXPECT_EQ(view.ranges()[1].row, 3);
  EXPECT_EQ(view.ranges()[1].source, 20);
  EXPECT_EQ(view.RangesFrom(2).size(), 2u);
  EXPECT_EQ(view.RangesFrom(3).size(), 1u);
  EXPECT_EQ(view.RangesFrom(8).size(), 0u);
}

TEST(RowView, StripsCoverEveryRowOnce) {
  for (const int workers : {1, 2, 3}) {
    for (const int64_t rows : {96, 97, 100, 255, 512, 515}) {
      const RowView view = ViewOf({{.rows = rows - 9}, {.rows = 9}}, workers, 1'000'000);
      if (!view.has_strips()) continue;
      int64_t next = 0;
      for (const Strip& strip : AllStrips(view, workers)) {
        EXPECT_EQ(strip.row, next);
        EXPECT_LE(strip.rows, kStripRows);
        next += strip.rows;
      }
      EXPECT_EQ(next, rows) << workers;
    }
  }
}

TEST(RowView, AWholePromptIsDealtEvenly) {
  const RowView view = ViewOf({{.rows = 512}}, 2, 100'000);
  ASSERT_TRUE(view.has_strips());
  int64_t cost[2] = {0, 0};
  for (const Strip& strip : AllStrips(view, 2)) cost[strip.owner] += strip.cost;
  EXPECT_EQ(cost[0], cost[1]);
  // The most expensive one first: what is left for others to take is cheap.
  EXPECT_EQ(view.StripsOf(0)[0].row, 512 - kStripRows);
}

TEST(RowView, AnUnevenDealIsNotMade) {
  // Two strips, the second with far more to attend to.
  EXPECT_FALSE(ViewOf({{.rows = 64}, {.rows = 64, .start = 4000}}, 2, 10).has_strips());
  EXPECT_TRUE(ViewOf({{.rows = 64}, {.rows = 64}}, 2, 10).has_strips());
}

TEST(RowView, FewRowsAndOtherProgramsHaveNoStrips) {
  constexpr int64_t kRows = 2 * kLeastStripRows;
  EXPECT_TRUE(ViewOf({{.rows = kRows}}, 2, 1'000'000).has_strips());
  EXPECT_FALSE(ViewOf({{.rows = kRows - 1}}, 2, 1'000'000).has_strips());
  EXPECT_FALSE(ViewOf({{.rows = kRows}}, 2, 1'000'000, false).has_strips());
  EXPECT_FALSE(ViewOf({}, 2, 1'000'000).has_strips());
}

TEST(RowView, EveryWorkerHasAStripWhereMatmulsDominate) {
  const RowView view = ViewOf({{.rows = 32 * 7}}, 7, 100'000'000);
  ASSERT_TRUE(view.has_strips());
  for (int owner = 0; owner < 7; ++owner) EXPECT_EQ(view.StripsOf(owner).size(), 1u);
}

}  // namespace
}  // namespace tessera::runtime
