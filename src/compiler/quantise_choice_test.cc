// SPDX-License-Identifier: Apache-2.0
#include "compiler/quantise_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::compiler {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kGB = 1'000'000'000;
// An 8B model in bfloat16.
constexpr QuantiseSize kSizes[] = {
    {"none", 16 * kGB}, {"q8_0", 8'500'000'000}, {"q6_k", 6'600'000'000}, {"q4_k", 4'900'000'000}};

std::string Choice(uint64_t kv, uint64_t memory) {
  const auto choice = ChooseQuantisation(kSizes, kv, memory);
  return choice.has_value() ? choice->quantize : choice.error().ToString();
}

TEST(QuantiseChoice, TakesTheFinestThatFitsWithItsKv) {
  EXPECT_EQ(Choice(kGB, 64 * kGB), "none");
  EXPECT_EQ(Choice(kGB, 20 * kGB), "none") << "17 of 17 GB";
  EXPECT_EQ(Choice(kGB + 1, 20 * kGB), "q8_0");
  EXPECT_EQ(Choice(kGB, 10 * kGB), "q6_k");
  EXPECT_EQ(Choice(3 * kGB, 10 * kGB), "q4_k");
  EXPECT_EQ(Choice(0, 0), "none") << "unknown memory";
}

TEST(QuantiseChoice, SaysWhatFitsAndWhatTheNextFinerNeeds) {
  const std::string reason = ChooseQuantisation(kSizes, kGB, 12 * kGB)->reason;
  EXPECT_EQ(reason,
            "8.50 GB of weights and 1.00 GB of KV fit into 10.20 GB of the 12.00 GB of memory; "
            "none has 16.00 GB of weights");
}

TEST(QuantiseChoice, RefusesWithNeedAndHaveWhenNothingFits) {
  EXPECT_THAT(Choice(kGB, 6 * kGB), HasSubstr("4.90 GB of weights (q4_k) and 1.00 GB of KV"));
  EXPECT_THAT(Choice(kGB, 6 * kGB), HasSubstr("5.10 GB of the 6.00 GB of memory"));
  EXPECT_THAT(Choice(UINT64_MAX, 6 * kGB), HasSubstr("--max-seq-len"));
}

}  // namespace
}  // namespace tessera::compiler
