// SPDX-License-Identifier: Apache-2.0
#include "engine/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/random.h"

namespace tessera::engine {
namespace {

using Tokens = std::vector<TokenId>;
constexpr TokenId kEnd = 0;

/// A language model of few tokens: log-probabilities by context, drawn from a seed.
class Language {
 public:
  Language(uint64_t seed, size_t vocab) : seed_(seed), vocab_(vocab) {}
  std::vector<double> Next(const Tokens& context) const {
    uint64_t hash = seed_;
    for (const TokenId token : context) hash = hash * 1000003 + static_cast<uint64_t>(token) + 7;
    Random random(hash);
    std::vector<double> p(vocab_);
    double sum = 0;
    for (double& value : p) sum += value = 0.01 + random.Uniform();
    for (double& value : p) value = std::log(value / sum);
    return p;
  }
  size_t vocab() const { return vocab_; }

 private:
  uint64_t seed_;
  size_t vocab_;
};

StopParams Stop(int64_t max_tokens) {
  return {.max_tokens = max_tokens, .min_tokens = 0, .eos_ids = {kEnd}, .stop_ids = {}};
}

Tokens Ids(const Beam& beam) {
  Tokens ids;
  for (const TokenOutput& token : beam.tokens) ids.push_back(token.id);
  return ids;
}

std::vector<Beam> Search(const Language& language, const BeamParams& params,
                         const StopParams& stop) {
  BeamSearch search(params, stop);
  for (int round = 0; round < 1000; ++round) {
    std::vector<BeamReport> reports;
    for (const Beam& beam : search.live()) {
      const std::vector<double> next = language.Next(Ids(beam));
      Tokens order(next.size());
      for (size_t id = 0; id < next.size(); ++id) order[id] = static_cast<TokenId>(id);
      std::ranges::stable_sort(order, std::greater<>(),
                               [&](TokenId id) { return next[static_cast<size_t>(id)]; });
      order.resize(std::min(order.size(), search.wanted()));
      BeamReport report;
      for (const TokenId id : order)
        report.push_back(
            {next[static_cast<size_t>(id)], {.id = id, .is_end = id == kEnd, .logprobs = {}}});
      reports.push_back(std::move(report));
    }
    const std::vector<size_t> parents = search.Advance(reports);
    EXPECT_EQ(parents.size(), search.live().size());
    if (parents.empty()) return search.TakeResults();
  }
  ADD_FAILURE() << "no end";
  return {};
}

/// Every answer there is, with its score.
void Enumerate(const Language& language, const BeamParams& params, size_t max_tokens,
               const Tokens& tokens, double logprob, std::vector<std::pair<double, Tokens>>* all) {
  if (tokens.size() == max_tokens || (!tokens.empty() && tokens.back() == kEnd)) {
    all->emplace_back(logprob / std::pow(static_cast<double>(tokens.size()), params.length_penalty),
                      tokens);
    return;
  }
  const std::vector<double> next = language.Next(tokens);
  for (size_t id = 0; id < next.size(); ++id) {
    Tokens longer = tokens;
    longer.push_back(static_cast<TokenId>(id));
    Enumerate(language, params, max_tokens, longer, logprob + next[id], all);
  }
}

TEST(BeamSearch, OneBeamIsGreedy) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Language language(seed, 6);
    Tokens greedy;
    while (greedy.size() < 10 && (greedy.empty() || greedy.back() != kEnd)) {
      const std::vector<double> next = language.Next(greedy);
      greedy.push_back(static_cast<TokenId>(std::ranges::max_element(next) - next.begin()));
    }
    BeamParams params;
    params.stops_early = true;
    const std::vector<Beam> results = Search(language, params, Stop(10));
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(Ids(results[0]), greedy) << seed;
  }
}

TEST(BeamSearch, WithRoomForAllItFindsTheBest) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Language language(seed, 3);  // At most 2 * 2 * 2 live beams at length 3.
    BeamParams params;
    params.width = 32;
    params.length_penalty = seed % 3 == 0 ? 0.0 : seed % 3 == 1 ? 1.0 : 1.7;
    std::vector<std::pair<double, Tokens>> all;
    Enumerate(language, params, 4, {}, 0, &all);
    std::ranges::sort(all, std::greater<>());
    const std::vector<Beam> results = Search(language, params, Stop(4));
    ASSERT_EQ(results.size(), std::min<size_t>(all.size(), 32));
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_NEAR(results[i].score, all[i].first, 1e-12) << seed;
      EXPECT_EQ(Ids(results[i]), all[i].second) << seed;
    }
  }
}

TEST(BeamSearch, MoreBeamsFindNoWorseAnswerOnAverage) {
  double sums[3] = {0, 0, 0};
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Language language(seed, 8);
    for (const int power : {0, 1, 2}) {
      BeamParams params;
      params.width = 1 << (2 * power);
      sums[power] += Search(language, params, Stop(8)).front().score;
    }
  }
  EXPECT_GT(sums[1], sums[0]);
  EXPECT_GT(sums[2], sums[1]);
}

TEST(BeamSearch, ResultsAreDistinctAndDescending) {
  BeamParams params;
  params.width = 5;
  const std::vector<Beam> results = Search(Language(4, 9), params, Stop(12));
  ASSERT_EQ(results.size(), 5u);
  std::map<Tokens, int> seen;
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(++seen[Ids(results[i])], 1);
    if (i > 0) {
      EXPECT_LE(results[i].score, results[i - 1].score);
    }
  }
}

TEST(BeamSearch, ALongerAnswerWinsWithAGreaterLengthPenalty) {
  size_t lengths[2] = {0, 0};
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (const size_t i : {0u, 1u}) {
      BeamParams params;
      params.width = 4;
      params.length_penalty = i == 0 ? 0.0 : 2.0;
      lengths[i] += Search(Language(seed, 4), params, Stop(20)).front().tokens.size();
    }
  }
  EXPECT_LT(lengths[0], lengths[1]);
}

TEST(BeamSearch, EqualsGoToTheLowerId) {
  BeamParams params;
  params.width = 2;
  BeamSearch search(params, Stop(1));
  const auto token = [](TokenId id) {
    return BeamToken{-1.0, {.id = id, .is_end = false, .logprobs = {}}};
  };
  EXPECT_TRUE(search.Advance(std::vector<BeamReport>{{token(7), token(3), token(5)}}).empty());
  const std::vector<Beam> results = search.TakeResults();
  EXPECT_EQ(Ids(results.at(0)), Tokens{3});
  EXPECT_EQ(Ids(results.at(1)), Tokens{5});
}

}  // namespace
}  // namespace tessera::engine
