// SPDX-License-Identifier: Apache-2.0
#include "bundle/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bundle/program_verify.h"
#include "bundle/sample_program_for_test.h"

namespace tessera::bundle {
namespace {

using ::testing::HasSubstr;

TEST(Shards, OneRankIsTheWholeProgram) {
  const Program program = SampleProgram();
  const auto shares = PlanShares(program, 1, false);
  ASSERT_TRUE(shares.has_value());
  const auto rank = MakeRankProgram(program, *shares, 0);
  ASSERT_TRUE(rank.has_value());
  EXPECT_EQ(rank->program, program);
  EXPECT_EQ(rank->vocabulary, (Interval{0, program.dims.vocab_size}));
}

TEST(Shards, AProgramWithoutSegmentsHasOneRank) {
  Program program = SampleProgram();
  for (Weight& weight : program.weights) weight.segments = 1;
  EXPECT_EQ(PossibleRanks(program, true), "tp1");
  const auto shares = PlanShares(program, 2, true);
  ASSERT_FALSE(shares.has_value());
  EXPECT_THAT(shares.error().ToString(), HasSubstr("use tp1"));
}

TEST(Shards, MoreThanEightRanksAreRefused) {
  EXPECT_EQ(StatusOf(PlanShares(SampleProgram(), kMaxRanks + 1, true)).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(StatusOf(PlanShares(SampleProgram(), 0, true)).code(), Code::kInvalidArgument);
}

TEST(Shards, RankFilesAreNamedAfterTheirArchive) {
  EXPECT_EQ(RankFile("model.irpa", 3), "model.rank3.irpa");
}

}  // namespace
}  // namespace tessera::bundle
