// SPDX-License-Identifier: Apache-2.0
//
// The grid of `bench`: what flags mean, and which steps a case is made of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/bench_case.h"
#include "cli/bench_report.h"
#include "cli/number_list.h"

namespace tessera::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(NumberList, TakesListsAndRanges) {
  EXPECT_THAT(*ParseNumberList("512", 0), ElementsAre(512));
  EXPECT_THAT(*ParseNumberList("1,2,4", 0), ElementsAre(1, 2, 4));
  EXPECT_THAT(*ParseNumberList("3-5", 0), ElementsAre(3, 4, 5));
  EXPECT_THAT(*ParseNumberList("128-512+128,7", 0), ElementsAre(128, 256, 384, 512, 7));
  EXPECT_THAT(*ParseNumberList("1-33*2", 1), ElementsAre(1, 2, 4, 8, 16, 32));
  EXPECT_THAT(*ParseNumberList("0-4+3", 0), ElementsAre(0, 3));
  EXPECT_THAT(*ParseNumberList("9-9", 0), ElementsAre(9));
}

TEST(NumberList, QuotesWhatIsNone) {
  for (const char* text : {"", ",", "1,", "a", "-1", "1-", "5-3", "1-4+0", "1-4*1", "0-4*2", "1-4+",
                           "1.5", "1 ", "1-2-3", "2147483649", "99999999999999999999"})
    EXPECT_THAT(ParseNumberList(text, 0).error().message(), HasSubstr("expected whole numbers"))
        << text;
  EXPECT_THAT(ParseNumberList("1,0", 1).error().message(), HasSubstr("\"0\": expected"));
}

TEST(NumberList, EndsAtItsLimit) {
  EXPECT_EQ(ParseNumberList("1-999", 0)->size(), kMaxNumbers - 1);
  EXPECT_EQ(ParseNumberList("1-1000", 0)->size(), kMaxNumbers);
  EXPECT_FALSE(ParseNumberList("1-1001", 0).has_value());
  EXPECT_FALSE(ParseNumberList("0-2147483648", 0).has_value());
  EXPECT_TRUE(ParseNumberList("8", 0, 9).has_value());
  EXPECT_TRUE(ParseNumberList("1,9", 0, 9).has_value());
  for (const char* text : {"10", "1,10", "8-10", "4-10*3"})
    EXPECT_THAT(ParseNumberList(text, 0, 9).error().message(),
                HasSubstr("expected whole numbers from 0 to 9"));
}

TEST(BenchGrid, IsEveryCombinationWithoutEmptyOnes) {
  std::vector<std::string> names;
  for (const BenchCase& test : BenchGrid({0, 64}, {8}, {0, 100}, {1, 2}))
    names.push_back(test.Name());
  EXPECT_THAT(names, ElementsAre("pp64", "tg8", "pp64 @ d100", "tg8 @ d100", "pp64 x 2", "tg8 x 2",
                                 "pp64 @ d100 x 2", "tg8 @ d100 x 2"));
}

/// "sequence:start+rows", with "!" when there are logits.
std::vector<std::string> Text(const std::vector<BenchStep>& steps) {
  std::vector<std::string> lines;
  for (const BenchStep& step : steps) {
    std::string line;
    for (const BenchPiece& piece : step)
      line += std::to_string(piece.sequence) + ":" + std::to_string(piece.shape.start) + "+" +
              std::to_string(piece.shape.rows) + (piece.shape.logit_rows > 0 ? "! " : " ");
    lines.push_back(line);
  }
  return lines;
}

TEST(BenchSteps, OfAPromptAreAsLargeAsTheyMayBeAcrossSequences) {
  EXPECT_THAT(Text(BenchSteps({true, 10, 5, 1}, 4)), ElementsAre("0:5+4 ", "0:9+4 ", "0:13+2! "));
  EXPECT_THAT(Text(BenchSteps({true, 3, 0, 3}, 6)), ElementsAre("0:0+3! 1:0+3! ", "2:0+3! "));
  EXPECT_THAT(Text(BenchSteps({true, 3, 0, 2}, 4)), ElementsAre("0:0+3! 1:0+1 ", "1:1+2! "));
  EXPECT_THAT(Text(BenchSteps({true, 0, 0, 2}, 4)), ElementsAre());
}

TEST(BenchSteps, OfGenerationAdvanceAllSequencesByOne) {
  EXPECT_THAT(Text(BenchSteps({false, 2, 7, 3}, 512)),
              ElementsAre("0:7+1! 1:7+1! 2:7+1! ", "0:8+1! 1:8+1! 2:8+1! "));
  EXPECT_THAT(Text(BenchSteps({false, 1, 0, 3}, 2)), ElementsAre("0:0+1! 1:0+1! ", "2:0+1! "));
}

TEST(BenchFigures, SummariseTheRuns) {
  BenchFigures figures;
  figures.tokens_per_second = {4, 1, 2, 9};
  EXPECT_EQ(figures.Mean(), 4);
  EXPECT_EQ(figures.Median(), 3);
  EXPECT_EQ(figures.Min(), 1);
  EXPECT_EQ(figures.Max(), 9);
  EXPECT_NEAR(figures.Deviation(), 3.559, 1e-3);
  figures.tokens_per_second = {5};
  EXPECT_EQ(figures.Median(), 5);
  EXPECT_EQ(figures.Deviation(), 0);
}

TEST(BenchRow, ComparesTheMedianRunWithTheMachine) {
  BenchRow row;
  row.test = {false, 4, 0, 2};
  row.figures.tokens_per_second = {8};  // One second.
  row.figures.counted = {.steps = 4,
                         .barriers = 60,
                         .weight_bytes = 300,
                         .kv_bytes = 100,
                         .matmul_macs = 40,
                         .attention_macs = 10};
  row.bound = {0.5, 0.25};
  row.rates.read_bytes = 800;
  row.layers = 3;
  EXPECT_EQ(row.WeightBytesPerSecond(), 300);
  EXPECT_EQ(row.ReadBytesPerSecond(), 400);
  EXPECT_EQ(row.OpsPerSecond(), 100);
  EXPECT_EQ(row.ShareOfRead(), 0.5);
  EXPECT_EQ(row.ShareOfArithmetic(), 0.25);
  EXPECT_EQ(row.BoundTokensPerSecond(), 16);
  EXPECT_EQ(row.BytesPerStep(), 100);
  EXPECT_EQ(row.BarriersPerLayer(), 5);
}

}  // namespace
}  // namespace tessera::cli
