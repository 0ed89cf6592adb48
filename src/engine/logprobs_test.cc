// SPDX-License-Identifier: Apache-2.0
#include "engine/logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/random.h"
#include "support/fixtures.h"

namespace tessera::engine {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

std::vector<float> Logits(const json::Value& array) {
  std::vector<float> logits;
  for (const json::Value& x : array.as_array())
    logits.push_back(x.is_null() ? kMinusInfinity : static_cast<float>(x.to_number<double>()));
  return logits;
}

TEST(ComputeLogprobs, MatchesEveryStoredVector) {
  int vectors = 0;
  for (const json::Value& line :
       testing::ReadJsonLines(testing::Shared("fixtures/sampling/cases.jsonl"))) {
    const json::Object& row = line.as_object();
    if (row.at("type").as_string() != "vector") continue;
    ++vectors;
    const std::vector<float> logits = Logits(row.at("logits"));
    const json::Array& wanted = row.at("logprobs").as_array();
    for (size_t id = 0; id < wanted.size(); ++id) {
      const Logprobs mine = ComputeLogprobs(logits, static_cast<TokenId>(id), 0);
      if (wanted[id].is_null()) {
        EXPECT_EQ(mine.chosen, kMinusInfinity);
      } else {
        const double value = wanted[id].to_number<double>();
        EXPECT_NEAR(mine.chosen, value, 1e-5 + std::abs(value) * 1e-6);
      }
    }
    const Logprobs top = ComputeLogprobs(logits, 0, 5);
    const json::Array& top5 = row.at("top5").as_array();
    ASSERT_EQ(top.top.size(), 5u);
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(top.top[i].id, top5[i].at(0).as_int64());
  }
  EXPECT_GT(vectors, 5);
}

TEST(ComputeLogprobs, TheRankCountsWhatIsLikelier) {
  const std::vector<float> logits{1, 3, 3, 2, kMinusInfinity};
  EXPECT_EQ(ComputeLogprobs(logits, 1, 0).rank, 1);
  EXPECT_EQ(ComputeLogprobs(logits, 2, 0).rank, 1);
  EXPECT_EQ(ComputeLogprobs(logits, 3, 0).rank, 3);
  EXPECT_EQ(ComputeLogprobs(logits, 4, 0).rank, 5);
}

TEST(GreatestIds, AreTheHeadOfAStableSort) {
  Random random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> values(1 + random.Below(300));
    for (float& value : values) value = static_cast<float>(random.Below(40));
    std::vector<TokenId> sorted(values.size());
    std::iota(sorted.begin(), sorted.end(), 0);
    std::ranges::stable_sort(sorted, [&](TokenId a, TokenId b) {
      return values[static_cast<size_t>(a)] > values[static_cast<size_t>(b)];
    });
    const size_t count = random.Below(30);
    sorted.resize(std::min(sorted.size(), count));
    EXPECT_EQ(GreatestIds(values, count), sorted);
  }
}

}  // namespace
}  // namespace tessera::engine
