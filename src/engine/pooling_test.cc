// SPDX-License-Identifier: Apache-2.0
//
// Pooled hidden states of prompts: those of the model, whatever the chunks, the cache, a preemption
// or other requests did.
#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "engine/engine_core.h"
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

Request Pooled(Tokens prompt, Pooling pooling) {
  Request request;
  request.prompt = std::move(prompt);
  request.stop.max_tokens = 0;
  request.pooling = pooling;
  return request;
}

std::vector<float> Wanted(const FakeSession& session, const Tokens& prompt, Pooling pooling) {
  if (pooling == Pooling::kLast) return session.Hidden(prompt);
  std::vector<double> sum(static_cast<size_t>(session.shape().hidden_size), 0.0);
  for (size_t i = 1; i <= prompt.size(); ++i) {
    const std::vector<float> row = session.Hidden(std::span(prompt).first(i));
    for (size_t k = 0; k < sum.size(); ++k) sum[k] += static_cast<double>(row[k]);
  }
  std::vector<float> mean;
  for (const double value : sum)
    mean.push_back(static_cast<float>(value / static_cast<double>(prompt.size())));
  return mean;
}

TEST(Pooling, IsOfTheModelsHiddenStatesForEveryLength) {
  CoreHarness h;
  for (const Pooling pooling : {Pooling::kMean, Pooling::kLast})
    for (const size_t length : {1, 2, 15, 16, 17, 64, 65, 150}) {
      const auto recorder = h.Add(Pooled(Prompt(length), pooling));
      h.Run();
      EXPECT_EQ(recorder->embedding, Wanted(h.session, Prompt(length), pooling)) << length;
      EXPECT_TRUE(recorder->tokens.empty());
      EXPECT_EQ(recorder->finish->reason, FinishReason::kLength);
      EXPECT_TRUE(recorder->finish->status.ok());
    }
}

TEST(Pooling, TheCacheHelpsTheLastAndHarmsNeither) {
  CoreHarness h;
  for (const Pooling pooling : {Pooling::kLast, Pooling::kMean, Pooling::kLast}) {
    const auto recorder = h.Add(Pooled(Prompt(100), pooling));
    h.Run();
    EXPECT_EQ(recorder->embedding, Wanted(h.session, Prompt(100), pooling));
  }
  const auto last = h.Add(Pooled(Prompt(100), Pooling::kLast));
  h.Run();
  EXPECT_EQ(last->finish->cached_tokens, 99);
  const auto mean = h.Add(Pooled(Prompt(100), Pooling::kMean));
  h.Run();
  EXPECT_EQ(mean->finish->cached_tokens, 0);
}

TEST(Pooling, CompanyChangesNothing) {
  CoreHarness h;
  const auto text = h.Add(Prompt(40, 1), 30);
  const auto mean = h.Add(Pooled(Prompt(90, 2), Pooling::kMean));
  const auto last = h.Add(Pooled(Prompt(70, 3), Pooling::kLast));
  h.Run();
  EXPECT_EQ(text->tokens, Expected(h.session, Prompt(40, 1), 30));
  EXPECT_EQ(mean->embedding, Wanted(h.session, Prompt(90, 2), Pooling::kMean));
  EXPECT_EQ(last->embedding, Wanted(h.session, Prompt(70, 3), Pooling::kLast));
}

TEST(Pooling, APreemptedMeanCountsNoTokenTwice) {
  FakeSessionOptions options;
  options.shape.page_count = 8;  // 128 tokens: not for all at a time.
  options.shape.max_rows = 16;
  CoreHarness h(options);
  const auto text = h.Add(Prompt(30, 1), 60);
  const auto mean = h.Add(Pooled(Prompt(100, 2), Pooling::kMean));
  h.Run();
  EXPECT_EQ(text->tokens, Expected(h.session, Prompt(30, 1), 60));
  EXPECT_EQ(mean->embedding, Wanted(h.session, Prompt(100, 2), Pooling::kMean));
}

TEST(Pooling, NothingElseCanBeAskedFor) {
  FakeSession session({});
  const auto recorder = std::make_shared<Recorder>();
  const auto check = [&](Request request) {
    request.sink = recorder;
    return CheckRequest(request, session.shape());
  };
  Request request = Pooled(Prompt(3), Pooling::kMean);
  EXPECT_TRUE(check(request).ok());
  request.stop.max_tokens = 1;
  EXPECT_EQ(check(request).code(), Code::kInvalidArgument);
  request.stop.max_tokens = 0;
  request.prompt_logprobs = 0;
  EXPECT_EQ(check(request).code(), Code::kInvalidArgument);
  FakeSessionOptions options;
  options.shape.hidden_size = 0;
  FakeSession without(options);
  Request wanted = Pooled(Prompt(3), Pooling::kMean);
  wanted.sink = recorder;
  EXPECT_EQ(CheckRequest(wanted, without.shape()).code(), Code::kUnimplemented);
}

}  // namespace
}  // namespace tessera::engine
