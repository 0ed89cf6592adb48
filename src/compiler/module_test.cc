// SPDX-License-Identifier: Apache-2.0
#include "compiler/module.h"

#include <gtest/gtest.h>

namespace tessera::compiler {
namespace {

/// The rows that the runs list, one by one.
std::vector<int64_t> Expand(const RowRuns& runs) {
  std::vector<int64_t> rows;
  for (const RowRun& run : runs)
    for (int64_t i = 0; i < run.count; ++i)
      rows.push_back(run.source * 1000 + run.first + i * run.step);
  return rows;
}

const RowRuns kRuns = {{0, 0, 4, 2}, {1, 5, 3, 1}, {0, 1, 2, 2}};

TEST(RowRuns, SliceListsTheSameRowsForEveryRange) {
  const std::vector<int64_t> all = Expand(kRuns);
  ASSERT_EQ(CountRows(kRuns), std::ssize(all));
  for (int64_t begin = 0; begin <= std::ssize(all); ++begin) {
    for (int64_t end = begin; end <= std::ssize(all); ++end) {
      const std::vector<int64_t> expected(all.begin() + begin, all.begin() + end);
      EXPECT_EQ(Expand(Slice(kRuns, begin, end - begin)), expected) << begin << " to " << end;
    }
  }
}

TEST(RowRunsDeathTest, SlicePastTheEndIsOurBug) {
  EXPECT_DEATH((void)Slice(kRuns, 5, 5), "check failed");
}

}  // namespace
}  // namespace tessera::compiler
