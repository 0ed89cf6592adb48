// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler_dry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "engine/sampler.h"

namespace tessera::engine {
namespace {

using Tokens = std::vector<TokenId>;
constexpr size_t kVocab = 8;

DryParams Dry(double multiplier, double base, int64_t allowed_length) {
  DryParams dry;
  dry.multiplier = multiplier;
  dry.base = base;
  dry.allowed_length = allowed_length;
  return dry;
}

std::vector<double> Penalties(const DryParams& dry, const Tokens& tokens) {
  std::vector<double> x(kVocab, 0);
  for (const auto& [id, penalty] : DryPenalties(dry, tokens)) x[static_cast<size_t>(id)] = penalty;
  return x;
}

/// By trying every earlier place and counting backwards from it.
std::vector<double> Naive(const DryParams& dry, Tokens tokens) {
  if (dry.last_tokens > 0 && static_cast<int64_t>(tokens.size()) > dry.last_tokens)
    tokens.erase(tokens.begin(), tokens.end() - dry.last_tokens);
  const auto is_breaker = [&](TokenId id) {
    return dry.breakers != nullptr && (*dry.breakers)[static_cast<size_t>(id)];
  };
  std::vector<double> penalties(kVocab, 0);
  for (size_t next = 1; next < tokens.size(); ++next) {
    int64_t length = 0;
    while (static_cast<size_t>(length) < next) {
      const auto back = static_cast<size_t>(length);
      const TokenId mine = tokens[tokens.size() - 1 - back];
      if (tokens[next - 1 - back] != mine || is_breaker(mine)) break;
      ++length;
    }
    if (length < dry.allowed_length || is_breaker(tokens[next])) continue;
    double& penalty = penalties[static_cast<size_t>(tokens[next])];
    penalty = std::max(penalty, dry.multiplier * std::pow(dry.base, length - dry.allowed_length));
  }
  return penalties;
}

TEST(SamplerDry, ALongerRepetitionCostsMore) {
  const DryParams dry = Dry(0.8, 2, 2);
  // "1 2 3" came before and was followed by 4.
  EXPECT_EQ(Penalties(dry, {1, 2, 3, 4, 7, 1, 2, 3})[4], 0.8 * 2);
  EXPECT_EQ(Penalties(dry, {2, 3, 4, 7, 1, 2, 3})[4], 0.8);
  EXPECT_EQ(Penalties(dry, {3, 4, 7, 1, 2, 3})[4], 0) << "one token is no repetition yet";
}

TEST(SamplerDry, EqualsTheNaiveCount) {
  Random random(3);
  for (int round = 0; round < 3000; ++round) {
    Tokens tokens(random.Below(60));
    const uint64_t letters = 1 + random.Below(4);  // Few, so that much repeats.
    for (TokenId& token : tokens) token = static_cast<TokenId>(random.Below(letters));
    DryParams dry = Dry(0.5, 1.75, 1 + static_cast<int64_t>(random.Below(4)));
    dry.last_tokens = random.Below(2) == 0 ? -1 : 1 + static_cast<int64_t>(random.Below(40));
    if (random.Below(2) == 0) {
      auto breakers = std::make_shared<std::vector<bool>>(kVocab, false);
      (*breakers)[random.Below(letters)] = true;
      dry.breakers = breakers;
    }
    EXPECT_EQ(Penalties(dry, tokens), Naive(dry, tokens)) << "round " << round;
  }
}

TEST(SamplerDry, AnEndlessRepetitionStaysFinite) {
  const std::vector<double> penalties = Penalties(Dry(1, 100, 1), Tokens(5000, 3));
  EXPECT_TRUE(std::isfinite(penalties[3]));
  EXPECT_GT(penalties[3], 1e20);
}

TEST(SamplerDry, TurnsAGreedyLoopElsewhere) {
  Sampler sampler;
  SamplingParams params;
  params.temperature = 0;
  params.dry = Dry(1, 2, 2);
  const Tokens prompt{1, 2, 3, 1, 2};
  TokenHistory history(params, prompt);
  const std::vector<float> logits{0, 0, 0, 5, 4.5, 0, 0, 0};
  EXPECT_EQ(sampler.Sample(logits, params, history, {}, 0).value(), 4);
  history.Push(7);
  EXPECT_EQ(sampler.Sample(logits, params, history, {}, 1).value(), 3) << "nothing repeats now";
  params.dry.last_tokens = 0;
  EXPECT_EQ(sampler.Sample(logits, params, {params, prompt}, {}, 0).value(), 3) << "off";
}

}  // namespace
}  // namespace tessera::engine
