// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler_xtc.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "engine/sampler.h"

namespace tessera::engine {
namespace {

std::map<TokenId, double> Kept(std::vector<double> p, double threshold) {
  std::vector<Candidate> candidates;
  for (size_t id = 0; id < p.size(); ++id)
    candidates.push_back({static_cast<TokenId>(id), 0, p[id]});
  ExcludeTopChoices(threshold, &candidates);
  std::map<TokenId, double> kept;
  for (const Candidate& candidate : candidates) kept[candidate.id] = candidate.p;
  return kept;
}

TEST(SamplerXtc, OfTheLikelyOnesTheLeastStays) {
  const std::map<TokenId, double> kept = Kept({0.5, 0.2, 0.25, 0.05}, 0.2);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_DOUBLE_EQ(kept.at(1), 0.8);
  EXPECT_DOUBLE_EQ(kept.at(3), 0.2);
}

TEST(SamplerXtc, OneLikelyTokenIsLeftAlone) {
  EXPECT_EQ(Kept({0.7, 0.2, 0.1}, 0.3).size(), 3u);
  EXPECT_EQ(Kept({0.4, 0.3, 0.3}, 0.51).size(), 3u);
}

TEST(SamplerXtc, OfEqualsTheLastStays) {
  EXPECT_EQ(Kept({0.25, 0.25, 0.25, 0.25}, 0.1), (std::map<TokenId, double>{{3, 1.0}}));
}

TEST(SamplerXtc, StrikesAsOftenAsAskedAndTheSameWayEachTime) {
  Sampler sampler;
  SamplingParams params;
  params.seed = 9;
  params.xtc = {.probability = 0.3, .threshold = 0.2};
  const std::vector<float> logits{std::log(0.6f), std::log(0.3f), std::log(0.1f)};
  constexpr uint64_t kDraws = 5000;
  int64_t struck = 0, first = 0;
  for (uint64_t position = 0; position < kDraws; ++position) {
    const auto kept = sampler.Distribution(logits, params, {params, {}}, {}, position);
    ASSERT_TRUE(kept.has_value());
    const bool is_struck = kept->size() == 2;
    EXPECT_EQ(is_struck, XtcStrikes(params, position));
    struck += is_struck ? 1 : 0;
    first += sampler.Sample(logits, params, {params, {}}, {}, position).value() == 0 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(struck) / kDraws, 0.3, 0.03);
  // Struck or not, the token is drawn independently: the first one comes at 0.7 * 0.6.
  EXPECT_NEAR(static_cast<double>(first) / kDraws, 0.42, 0.03);
}

TEST(SamplerXtc, GreedyStaysGreedy) {
  Sampler sampler;
  SamplingParams params;
  params.temperature = 0;
  params.xtc = {.probability = 1, .threshold = 0};
  EXPECT_EQ(sampler.Sample(std::vector<float>{1, 3, 2}, params, {params, {}}, {}, 0).value(), 1);
}

}  // namespace
}  // namespace tessera::engine
