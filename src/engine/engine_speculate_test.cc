// SPDX-License-Identifier: Apache-2.0
//
// Speculation: the tokens are those that single steps give, in fewer steps where text repeats, and
// it stops where it does not pay.
#include <gtest/gtest.h>

#include "engine/engine_core.h"
#include "support/core_harness.h"

namespace tessera::engine {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::CoreHarness;
using testing::Expected;
using testing::FakeSessionOptions;
using testing::Prompt;
using testing::Recorder;

using Tokens = std::vector<TokenId>;

const CoreOptions kSpeculating{.max_running = 4, .speculation = Speculation::kNgram};

/// A model that goes on with the text from the token after its latest earlier occurrence: it
/// quotes its prompt.
FakeSessionOptions Quoting() {
  FakeSessionOptions options;
  options.next = [](std::span<const int32_t> context) {
    for (size_t i = context.size() - 1; i-- > 0;)
      if (context[i] == context.back()) return context[i + 1];
    return 7;
  };
  return options;
}

Tokens Sentence() {
  Tokens tokens;
  for (int32_t i = 0; i < 30; ++i) tokens.push_back(10 + i);
  tokens.insert(tokens.end(), {10, 11, 12});
  return tokens;
}

TEST(Speculate, AQuoteTakesFewerStepsAndIsTheSame) {
  CoreHarness plain(Quoting());
  const auto slow = plain.Add(Sentence(), 60);
  const int steps = plain.Run();
  CoreHarness h(Quoting(), kSpeculating);
  const auto fast = h.Add(Sentence(), 60);
  EXPECT_LT(h.Run(), steps / 3);
  EXPECT_EQ(fast->tokens, slow->tokens);
  EXPECT_EQ(fast->tokens.size(), 60u);
  EXPECT_GT(h.core.stats().draft_accepted, 40);
  EXPECT_LE(h.core.stats().draft_accepted, h.core.stats().draft_tokens);
  EXPECT_EQ(plain.core.stats().draft_tokens, 0);
}

TEST(Speculate, ADrawnAnswerIsTheSameToo) {
  for (const double temperature : {0.2, 0.7, 1.5}) {
    Tokens answers[2];
    for (const bool speculates : {false, true}) {
      CoreHarness h(Quoting(), speculates ? kSpeculating : CoreOptions{.max_running = 4});
      Request request;
      request.prompt = Sentence();
      request.stop.max_tokens = 80;
      request.sampling.temperature = temperature;
      request.sampling.seed = 4;
      request.sampling.frequency_penalty = 0.1;
      request.sampling.dry.multiplier = 0.2;
      const auto recorder = h.Add(std::move(request));
      h.Run();
      answers[speculates ? 1 : 0] = recorder->tokens;
      EXPECT_EQ(h.core.stats().draft_tokens > 0, speculates);
    }
    EXPECT_EQ(answers[0], answers[1]) << temperature;
  }
}

TEST(Speculate, EndsWhereSingleStepsEnd) {
  for (const int64_t max_tokens : {1, 2, 3, 7, 20}) {
    CoreHarness h(Quoting(), kSpeculating);
    Request request;
    request.prompt = Sentence();
    request.sampling.temperature = 0;
    request.stop.max_tokens = max_tokens;
    request.stop.eos_ids = {29};
    request.top_logprobs = 1;
    const auto recorder = h.Add(std::move(request));
    h.Run();
    // 13, 14, ... and the end token is the 17th.
    EXPECT_EQ(std::ssize(recorder->tokens), std::min<int64_t>(max_tokens, 17));
    EXPECT_EQ(recorder->finish->reason,
              max_tokens < 17 ? FinishReason::kLength : FinishReason::kStop);
    for (const TokenOutput& token : recorder->outputs) EXPECT_TRUE(token.logprobs.has_value());
  }
}

TEST(Speculate, FillsAContextToItsEnd) {
  FakeSessionOptions options = Quoting();
  options.shape.max_seq_len = 64;
  CoreHarness h(options, kSpeculating);
  const auto recorder = h.Add(Sentence(), 64 - 33);
  h.Run();
  EXPECT_EQ(std::ssize(recorder->tokens), 31);
}

/// A model that goes on in pairs which occurred before, but never as they went on then.
FakeSessionOptions Misleading() {
  FakeSessionOptions options;
  options.shape.max_seq_len = 2048;
  options.shape.page_count = 256;
  options.next = [](std::span<const int32_t> context) {
    const auto turn = static_cast<int32_t>(context.size());
    return turn % 3 == 2 ? 100 + turn / 3 % 150 : turn % 3 == 0 ? 1 : 2;
  };
  return options;
}

TEST(Speculate, WhatWasGuessedWrongLeavesNoTrace) {
  CoreHarness h(Misleading(), kSpeculating);
  const auto recorder = h.Add(Prompt(30), 40);
  h.Run();
  EXPECT_GT(h.core.stats().draft_tokens, h.core.stats().draft_accepted);
  EXPECT_EQ(recorder->tokens, Expected(h.session, Prompt(30), 40));
  // Nor in the pages that it left.
  Tokens longer = Prompt(30);
  longer.insert(longer.end(), recorder->tokens.begin(), recorder->tokens.end());
  const auto next = h.Add(longer, 10);
  h.Run();
  EXPECT_GT(next->finish->cached_tokens, 60);
  EXPECT_EQ(next->tokens, Expected(h.session, longer, 10));
}

TEST(Speculate, WhereRowsAreDearItStops) {
  // A row costs as much as a step: a guess can never gain. The model quotes, so all would be right.
  for (const bool is_dear : {false, true}) {
    CoreHarness* harness = nullptr;
    FakeSessionOptions options = Quoting();
    options.on_chunks = [&harness, is_dear](std::span<const runtime::Chunk> chunks) {
      int64_t rows = 0;
      for (const runtime::Chunk& chunk : chunks) rows += std::ssize(chunk.tokens);
      harness->clock.now +=
          is_dear ? milliseconds(10) * rows : milliseconds(10) + microseconds(100) * rows;
    };
    CoreHarness h(options, kSpeculating);
    harness = &h;
    const auto recorder = h.Add(Sentence(), 200);
    h.Run();
    const Stats& stats = h.core.stats();
    if (is_dear) {
      EXPECT_LT(stats.draft_tokens, 20) << "a few, until it has been measured";
    } else {
      EXPECT_GT(stats.draft_accepted, 100);
    }
    EXPECT_EQ(recorder->tokens, Expected(h.session, Sentence(), 200));
  }
}

TEST(Speculate, WhereNothingIsRightItNearlyStops) {
  CoreHarness h(Misleading(), kSpeculating);
  const auto recorder = h.Add(Prompt(30), 1000);
  h.Run();
  EXPECT_EQ(recorder->tokens, Expected(h.session, Prompt(30), 1000));
  EXPECT_LT(h.core.stats().draft_tokens - h.core.stats().draft_accepted, 250);
}

}  // namespace
}  // namespace tessera::engine
