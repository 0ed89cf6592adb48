// SPDX-License-Identifier: Apache-2.0
//
// Log-probabilities of the prompt: the same numbers whatever the cache, the chunks or a preemption
// did, and never at the cost of another request.
#include <gtest/gtest.h>

#include "engine/engine_core.h"
#include "engine/logprobs.h"
#include "support/core_harness.h"

namespace tessera::engine {
namespace {

using testing::CoreHarness;
using testing::Expected;
using testing::FakeSession;
using testing::FakeSessionOptions;
using testing::Prompt;
using testing::Recorder;

using Tokens = std::vector<TokenId>;

Request Scoring(Tokens prompt, int64_t max_tokens, int top) {
  Request request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = 0;
  request.stop.max_tokens = max_tokens;
  request.prompt_logprobs = top;
  return request;
}

void ExpectScores(const FakeSession& session, const Tokens& prompt, int top,
                  const Recorder& recorder) {
  ASSERT_TRUE(recorder.prompt.has_value());
  ASSERT_EQ(recorder.prompt->size(), prompt.size() - 1);
  Tokens context;
  for (size_t i = 0; i + 1 < prompt.size(); ++i) {
    context.push_back(prompt[i]);
    const Logprobs expected = ComputeLogprobs(session.Logits(context), prompt[i + 1], top);
    const Logprobs& mine = (*recorder.prompt)[i];
    EXPECT_EQ(mine.chosen, expected.chosen) << i;
    EXPECT_EQ(mine.rank, expected.rank) << i;
    ASSERT_EQ(mine.top.size(), expected.top.size());
    for (size_t k = 0; k < mine.top.size(); ++k) EXPECT_EQ(mine.top[k].id, expected.top[k].id);
  }
}

TEST(PromptLogprobs, AreThoseOfTheModelAndComeBeforeTheAnswer) {
  CoreHarness h;
  const auto recorder = h.Add(Scoring(Prompt(150), 4, 2));  // Three chunks and more.
  h.Run();
  ExpectScores(h.session, Prompt(150), 2, *recorder);
  EXPECT_EQ(recorder->tokens, Expected(h.session, Prompt(150), 4));
}

TEST(PromptLogprobs, WithoutAnAnswerTheRequestEndsWithThem) {
  CoreHarness h;
  for (const size_t length : {1, 2, 16, 17, 70}) {
    const auto recorder = h.Add(Scoring(Prompt(length), 0, 0));
    h.Run();
    ExpectScores(h.session, Prompt(length), 0, *recorder);
    EXPECT_TRUE(recorder->tokens.empty());
    ASSERT_TRUE(recorder->finish.has_value());
    EXPECT_EQ(recorder->finish->reason, FinishReason::kLength);
    EXPECT_EQ(recorder->finish->prompt_tokens, static_cast<int64_t>(length));
  }
  EXPECT_EQ(h.core.stats().prompt_tokens, 1 + 2 + 16 + 17 + 70);
}

TEST(PromptLogprobs, APromptAsLongAsTheContextCanBeScored) {
  CoreHarness h;
  const int64_t most = MaxSequenceTokens(h.session.shape());
  const auto recorder = h.Add(Scoring(Prompt(static_cast<size_t>(most)), 0, 0));
  h.Run();
  ExpectScores(h.session, Prompt(static_cast<size_t>(most)), 0, *recorder);
  Request longer = Scoring(Prompt(static_cast<size_t>(most) + 1), 0, 0);
  longer.sink = std::make_shared<Recorder>();
  EXPECT_EQ(CheckRequest(longer, h.session.shape()).code(), Code::kInvalidArgument);
}

TEST(PromptLogprobs, NoAnswerIsOnlyAllowedWithThem) {
  CoreHarness h;
  Request request = Scoring(Prompt(3), 0, -1);
  request.sink = std::make_shared<Recorder>();
  EXPECT_EQ(CheckRequest(request, h.session.shape()).code(), Code::kInvalidArgument);
  request.prompt_logprobs = kTopLogprobsMax;
  EXPECT_TRUE(CheckRequest(request, h.session.shape()).ok());
  request.prompt_logprobs = kTopLogprobsMax + 1;
  EXPECT_EQ(CheckRequest(request, h.session.shape()).code(), Code::kInvalidArgument);
}

TEST(PromptLogprobs, AreComputedAlthoughTheCacheHasThePrompt) {
  CoreHarness h;
  h.Add(Prompt(100), 1);
  h.Run();
  const auto recorder = h.Add(Scoring(Prompt(100), 1, 0));
  h.Run();
  ExpectScores(h.session, Prompt(100), 0, *recorder);
  EXPECT_EQ(recorder->finish->cached_tokens, 0);
  EXPECT_EQ(recorder->finish->cache_miss.reason, CacheMiss::Reason::kLogprobs);
  // What it has computed is there for others.
  const auto next = h.Add(Prompt(100), 1);
  h.Run();
  EXPECT_EQ(next->finish->cached_tokens, 99);
}

TEST(PromptLogprobs, APreemptionLosesNone) {
  FakeSessionOptions options;
  options.shape.page_count = 12;
  options.shape.max_rows = 20;
  CoreHarness h(options);
  std::vector<std::shared_ptr<Recorder>> recorders;
  recorders.push_back(h.Add(Prompt(20, 7), 150));
  for (int i = 0; i < 3; ++i) recorders.push_back(h.Add(Scoring(Prompt(60, i), 20, 1)));
  h.Run();
  EXPECT_GT(h.core.stats().preemptions, 0);
  for (int i = 0; i < 3; ++i) {
    const Recorder& recorder = *recorders[static_cast<size_t>(i + 1)];
    ExpectScores(h.session, Prompt(60, i), 1, recorder);
    EXPECT_EQ(recorder.tokens, Expected(h.session, Prompt(60, i), 20));
  }
}

TEST(PromptLogprobs, AStepComputesNoMoreLogitsThanTheLimit) {
  FakeSessionOptions options;
  options.shape.max_rows = 512;
  CoreHarness h(options);
  for (int i = 0; i < 3; ++i) h.Add(Scoring(Prompt(100, i), 0, 0));
  // 300 rows that all want logits, so many at a time.
  EXPECT_EQ(h.Run(), (300 + kAllLogitsRowsMax - 1) / kAllLogitsRowsMax);
}

}  // namespace
}  // namespace tessera::engine
