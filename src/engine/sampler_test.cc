// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "base/random.h"
#include "support/fixtures.h"

namespace tessera::engine {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

struct Vector {
  std::vector<float> logits;
  std::vector<TokenId> prompt, generated;
  std::vector<std::pair<TokenId, double>> bias;
  json::Object raw;
};

std::vector<TokenId> Ids(const json::Value& array) {
  std::vector<TokenId> ids;
  for (const json::Value& id : array.as_array()) ids.push_back(static_cast<TokenId>(id.as_int64()));
  return ids;
}

Vector ReadVector(const json::Object& row) {
  Vector vector{.logits = {},
                .prompt = Ids(row.at("prompt_ids")),
                .generated = Ids(row.at("generated_ids")),
                .bias = {},
                .raw = row};
  for (const json::Value& x : row.at("logits").as_array())
    vector.logits.push_back(x.is_null() ? kMinusInfinity
                                        : static_cast<float>(x.to_number<double>()));
  for (const json::Value& pair : row.at("logit_bias").as_array())
    vector.bias.emplace_back(static_cast<TokenId>(pair.at(0).as_int64()),
                             pair.at(1).to_number<double>());
  return vector;
}

SamplingParams ReadParams(const json::Object& object, const Vector& vector) {
  SamplingParams params;
  std::set<std::string> known;
  const auto number = [&](const char* key, double fallback) {
    known.insert(key);
    return json::GetDouble(object, key, fallback).value();
  };
  params.temperature = number("temperature", 1);
  params.min_p = number("min_p", 0);
  params.typical_p = number("typical_p", 1);
  params.top_k = static_cast<int64_t>(number("top_k", -1));
  params.top_p = number("top_p", 1);
  params.repetition_penalty = number("repetition_penalty", 1);
  params.frequency_penalty = number("frequency_penalty", 0);
  params.presence_penalty = number("presence_penalty", 0);
  known.insert("logit_bias");
  if (json::GetBool(object, "logit_bias", false).value()) params.logit_bias = vector.bias;
  for (const auto& [key, value] : object) EXPECT_TRUE(known.contains(std::string(key))) << key;
  return params;
}

void ExpectCase(const json::Object& row, const Vector& vector, Sampler* sampler) {
  SCOPED_TRACE(std::string(row.at("id").as_string()) + " " + json::Serialize(row.at("params")));
  const SamplingParams params = ReadParams(row.at("params").as_object(), vector);
  TokenHistory history(params, vector.prompt);
  for (const TokenId id : vector.generated) history.Push(id);
  const auto kept = sampler->Distribution(vector.logits, params, history, {});
  ASSERT_TRUE(kept.has_value()) << kept.error().ToString();
  std::map<TokenId, double> mine;
  double sum = 0;
  for (const Candidate& candidate : *kept) {
    mine[candidate.id] = candidate.p;
    sum += candidate.p;
  }
  EXPECT_NEAR(sum, 1, 1e-9);
  if (!row.contains("warn")) {
    EXPECT_EQ(static_cast<int64_t>(kept->size()), row.at("kept").as_int64());
  }
  std::map<TokenId, double> wanted;
  for (const json::Value& pair : row.at("probs").as_array())
    wanted[static_cast<TokenId>(pair.at(0).as_int64())] = pair.at(1).to_number<double>();
  for (const auto& [id, p] : wanted) EXPECT_NEAR(mine[id], p, 1e-5) << "token " << id;
  for (const auto& [id, p] : mine)
    if (!wanted.contains(id)) {
      EXPECT_LE(p, 1e-5) << "token " << id;
    }
}

TEST(Sampler, MatchesEveryStoredCase) {
  std::map<std::string, Vector> vectors;
  Sampler sampler;
  int cases = 0;
  for (const json::Value& line :
       testing::ReadJsonLines(testing::Shared("fixtures/sampling/cases.jsonl"))) {
    const json::Object& row = line.as_object();
    const std::string name(row.at("vector").as_string());
    if (row.at("type").as_string() == "vector") {
      vectors.emplace(name, ReadVector(row));
    } else {
      ExpectCase(row, vectors.at(name), &sampler);
      ++cases;
    }
  }
  EXPECT_GE(cases, 290);
}

TEST(Sampler, GreedyTakesTheLowestIdOnATie) {
  Sampler sampler;
  const std::vector<float> logits{1, 3, 3, 2};
  const SamplingParams params{.temperature = 0, .logit_bias = {}};
  EXPECT_EQ(sampler.Sample(logits, params, {params, {}}, {}, 0).value(), 1);
  const TokenId banned[] = {1};
  EXPECT_EQ(sampler.Sample(logits, params, {params, {}}, banned, 0).value(), 2);
}

TEST(Sampler, GreedyIsTheFirstMaximumOfAnyRow) {
  Sampler sampler;
  const SamplingParams greedy{.temperature = 0, .logit_bias = {}};
  Random random(11);
  for (const size_t size : {1, 2, 1023, 1024, 1025, 3000}) {
    for (int round = 0; round < 200; ++round) {
      std::vector<float> logits(size);
      // Few values, so that there are equals, both zeros and -infinity among them.
      for (float& x : logits) {
        const auto pick = static_cast<float>(random.Below(7)) - static_cast<float>(round % 7);
        x = pick == 1 ? -0.0f : pick == -6 ? kMinusInfinity : 1.5f * pick;
      }
      logits[random.Below(size)] = round % 3 == 0 ? -0.0f : -1e30f;  // Something finite.
      const auto best = std::ranges::max_element(logits);
      EXPECT_EQ(sampler.Sample(logits, greedy, {greedy, {}}, {}, 0).value(), best - logits.begin());
    }
  }
}

TEST(Sampler, ADrawDependsOnSeedStreamAndPositionOnly) {
  const std::vector<float> logits(50, 0.0f);
  const auto draw = [&](uint64_t seed, uint64_t stream) {
    Sampler sampler;
    SamplingParams params;
    params.seed = seed;
    params.stream = stream;
    std::vector<TokenId> tokens;
    for (uint64_t position = 0; position < 20; ++position)
      tokens.push_back(sampler.Sample(logits, params, {params, {}}, {}, position).value());
    return tokens;
  };
  EXPECT_EQ(draw(1, 0), draw(1, 0));
  EXPECT_NE(draw(1, 0), draw(2, 0));
  EXPECT_NE(draw(1, 0), draw(1, 1));
}

TEST(Sampler, DrawsFollowTheDistribution) {
  const std::vector<float> logits{std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  Sampler sampler;
  SamplingParams params;
  params.seed = 11;
  std::array<int, 3> seen{};
  constexpr int kDraws = 20000;
  for (uint64_t position = 0; position < kDraws; ++position)
    ++seen[static_cast<size_t>(sampler.Sample(logits, params, {params, {}}, {}, position).value())];
  // Five standard deviations of a binomial with p = 0.5.
  const double tolerance = 5 * std::sqrt(0.25 * kDraws);
  EXPECT_NEAR(seen[0], 0.5 * kDraws, tolerance);
  EXPECT_NEAR(seen[1], 0.3 * kDraws, tolerance);
  EXPECT_NEAR(seen[2], 0.2 * kDraws, tolerance);
}

std::vector<float> RandomLogits(size_t size, uint64_t seed) {
  Random random(seed);
  std::vector<float> logits(size);
  for (float& x : logits) x = static_cast<float>(6 * random.Normal());
  for (size_t i = 0; i < size; i += 17) logits[i] = std::round(logits[i]);  // Equals.
  for (size_t i = 3; i < size; i += 29) logits[i] = kMinusInfinity;
  return logits;
}

TEST(Sampler, APlainDrawIsADrawFromItsDistribution) {
  Sampler sampler;
  for (uint64_t round = 0; round < 300; ++round) {
    const std::vector<float> logits = RandomLogits(500, round);
    SamplingParams params;
    params.seed = round;
    params.temperature = round % 3 == 0 ? 1.0 : 0.02 * static_cast<double>(round + 1);
    const auto kept = sampler.Distribution(logits, params, {params, {}}, {});
    ASSERT_TRUE(kept.has_value());
    const double u = UniformAt(params.seed, params.stream, round);
    double mass = 0;
    TokenId expected = kept->back().id;
    for (const Candidate& candidate : *kept) {
      mass += candidate.p;
      if (u < mass) {
        expected = candidate.id;
        break;
      }
    }
    EXPECT_EQ(sampler.Sample(logits, params, {params, {}}, {}, round).value(), expected);
  }
}

TEST(Sampler, TopKKeepsTheGreatestAndAllEqualToTheLeastOfThem) {
  Sampler sampler;
  for (uint64_t round = 0; round < 100; ++round) {
    const std::vector<float> logits = RandomLogits(700, round);
    SamplingParams params;
    params.top_k = static_cast<int64_t>(1 + round * 7);
    params.temperature = 100;  // Nothing kept underflows to p = 0.
    std::vector<float> sorted = logits;
    std::ranges::sort(sorted, std::greater<>());
    const float least = sorted[std::min(sorted.size(), static_cast<size_t>(params.top_k)) - 1];
    std::vector<TokenId> expected;
    for (size_t id = 0; id < logits.size(); ++id)
      if (logits[id] >= least && logits[id] != kMinusInfinity)
        expected.push_back(static_cast<TokenId>(id));
    const auto kept = sampler.Distribution(logits, params, {params, {}}, {});
    ASSERT_TRUE(kept.has_value());
    std::vector<TokenId> ids;
    for (const Candidate& candidate : *kept) ids.push_back(candidate.id);
    EXPECT_EQ(ids, expected) << params.top_k;
  }
}

TEST(Sampler, ATinyTemperatureIsGreedyAndNotInfinite) {
  Sampler sampler;
  SamplingParams params;
  params.temperature = 1e-300;
  const std::vector<float> logits{30000, 29999, -5};
  EXPECT_EQ(sampler.Sample(logits, params, {params, {}}, {}, 0).value(), 0);
}

TEST(Sampler, TopPOverAFlatVocabularyKeepsExactlyItsShare) {
  // More than the first sorted head (64), so that the head has to grow.
  const std::vector<float> logits(1000, 1.0f);
  Sampler sampler;
  SamplingParams params;
  params.top_p = 0.4995;
  const auto kept = sampler.Distribution(logits, params, {params, {}}, {});
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(kept->size(), 500u);
  EXPECT_EQ(kept->back().id, 499) << "of equals, the lower ids stay";
}

TEST(Sampler, BrokenLogitsAreTheModelsFault) {
  Sampler sampler;
  const SamplingParams greedy{.temperature = 0, .logit_bias = {}};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& logits :
       {std::vector<float>{1, nan}, std::vector<float>{1, -kMinusInfinity},
        std::vector<float>{1, -nan}, std::vector<float>{kMinusInfinity, kMinusInfinity}}) {
    EXPECT_EQ(sampler.Sample(logits, greedy, {greedy, {}}, {}, 0).error().code(), Code::kInternal);
    EXPECT_EQ(sampler.Sample(logits, {}, {{}, {}}, {}, 0).error().code(), Code::kInternal);
  }
}

TEST(Sampler, BanningEverythingIsTheClientsFault) {
  Sampler sampler;
  const TokenId banned[] = {0, 1};
  const SamplingParams greedy{.temperature = 0, .logit_bias = {}};
  const std::vector<float> logits{1, 2};
  EXPECT_EQ(sampler.Sample(logits, greedy, {greedy, {}}, banned, 0).error().code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace tessera::engine
