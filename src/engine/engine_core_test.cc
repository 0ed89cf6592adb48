// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_core.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>

#include "engine/limits.h"
#include "support/core_harness.h"
#include "support/fake_session.h"

namespace tessera::engine {
namespace {

using std::chrono::milliseconds;
using testing::CoreHarness;
using testing::Expected;
using testing::FakeSession;
using testing::FakeSessionOptions;
using testing::Prompt;
using testing::Recorder;

TEST(EngineCore, PrefillIsReportedStepByStepToWhomAsks) {
  CoreHarness h;
  Request request;
  request.prompt = Prompt(150);  // Steps of 64 rows.
  request.sampling.temperature = 0;
  request.stop.max_tokens = 2;
  request.wants_progress = true;
  const auto first = h.Add(request);
  h.Run();
  std::vector<int64_t> processed;
  for (const PrefillProgress& step : first->progress) {
    EXPECT_EQ(step.total, 150);
    EXPECT_EQ(step.cached, 0);
    processed.push_back(step.processed);
  }
  EXPECT_EQ(processed, (std::vector<int64_t>{64, 128, 150}));
  EXPECT_EQ(first->tokens.size(), 2u);
  const auto second = h.Add(request);
  h.Run();
  ASSERT_EQ(second->progress.size(), 1u) << "the cache had the rest";
  EXPECT_EQ(second->progress[0].processed, 150);
  EXPECT_EQ(second->progress[0].cached, 149);
  EXPECT_TRUE(h.Add(Prompt(100), 1)->progress.empty());
}

TEST(EngineCore, MemoryIsFoundAheadForTheNextPagesAndOnlyOnce) {
  FakeSessionOptions options;
  options.shape.page_tokens = 64;
  options.shape.page_count = 40;
  options.shape.max_seq_len = 2048;
  CoreHarness h(options);
  const auto back_all = [&] {
    while (h.core.can_back()) h.core.BackNextPage();
    return std::ssize(h.session.backed());
  };
  constexpr int64_t kAhead = kBackedTokensAhead / 64;
  EXPECT_EQ(back_all(), kAhead);
  h.Add(Prompt(3 * 64), 1);
  h.Run();
  EXPECT_EQ(back_all(), kAhead + 3);
  h.Add(Prompt(20 * 64, 1), 1);  // Runs past what was backed.
  h.Run();
  back_all();
  const auto& backed = h.session.backed();
  EXPECT_TRUE(std::ranges::adjacent_find(backed, std::ranges::greater_equal()) == backed.end());
  EXPECT_EQ(backed.back(), std::min<int64_t>(23 + kAhead, 40) - 1);
  h.Add(Prompt(30 * 64, 2), 1);  // Takes all pages that were never used.
  h.Run();
  EXPECT_FALSE(h.core.can_back());
}

TEST(EngineCore, AStepEndsForAllSinksAfterItsEvents) {
  struct Counted : Recorder {
    explicit Counted(std::vector<size_t>* all) : heard(all) {}
    void OnStepEnd() override { heard->push_back(tokens.size()); }
    std::vector<size_t>* heard;
  };
  CoreHarness h;
  std::vector<size_t> heard;
  for (const int64_t length : {2, 3}) {
    Request request;
    request.prompt = Prompt(5, static_cast<int>(length));
    request.sampling.temperature = 0;
    request.stop.max_tokens = length;
    request.sink = std::make_shared<Counted>(&heard);
    h.core.Add(static_cast<RequestId>(length), std::move(request));
  }
  h.Run();
  // Both of the first two steps; the last of two tokens comes with its finish.
  EXPECT_EQ(heard, (std::vector<size_t>{1, 1, 2, 2, 2, 3, 3}));
}

TEST(EngineCore, GeneratesWhatTheModelSays) {
  CoreHarness h;
  const auto recorder = h.Add(Prompt(5), 12);
  EXPECT_EQ(h.Run(), 12);
  EXPECT_EQ(recorder->tokens, Expected(h.session, Prompt(5), 12));
  ASSERT_TRUE(recorder->finish.has_value());
  EXPECT_EQ(recorder->finish->reason, FinishReason::kLength);
  EXPECT_EQ(recorder->finish->prompt_tokens, 5);
  EXPECT_EQ(recorder->finish->generated_tokens, 12);
}

TEST(EngineCore, ALongPromptTakesSeveralStepsAndChangesNothing) {
  CoreHarness h;  // 64 rows a step.
  const auto recorder = h.Add(Prompt(130), 3);
  EXPECT_EQ(h.Run(), 3 + 2);
  EXPECT_EQ(recorder->tokens, Expected(h.session, Prompt(130), 3));
}

TEST(EngineCore, CompanyInTheBatchChangesNothing) {
  CoreHarness h;
  std::vector<std::shared_ptr<Recorder>> recorders;
  for (int i = 0; i < 9; ++i) {
    recorders.push_back(h.Add(Prompt(static_cast<size_t>(3 + 11 * i), i), 5 + i));
    h.Step();
  }
  EXPECT_GE(h.core.stats().running, 3);
  h.Run();
  for (int i = 0; i < 9; ++i)
    EXPECT_EQ(recorders[static_cast<size_t>(i)]->tokens,
              Expected(h.session, Prompt(static_cast<size_t>(3 + 11 * i), i), 5 + i));
}

TEST(EngineCore, PreemptionChangesNothing) {
  FakeSessionOptions options;
  options.shape.page_count = 6;  // 96 positions for three sequences of up to 60.
  CoreHarness h(options);
  std::vector<std::shared_ptr<Recorder>> recorders;
  for (int i = 0; i < 3; ++i) recorders.push_back(h.Add(Prompt(20, i), 40));
  h.Run();
  EXPECT_GT(h.core.stats().preemptions, 0);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(recorders[static_cast<size_t>(i)]->tokens, Expected(h.session, Prompt(20, i), 40));
  EXPECT_EQ(h.core.stats().prompt_tokens, 60) << "a prompt computed twice is counted once";
  EXPECT_EQ(h.core.stats().generation_tokens, 120);
}

TEST(EngineCore, EndingTokensEndAndAreMarked) {
  FakeSessionOptions options;
  options.next = testing::Recite("hello", 10, 257);
  CoreHarness h(options);
  Request request;
  request.prompt = {'x', 10};
  request.stop = {.max_tokens = 50, .min_tokens = 0, .eos_ids = {256, 257}, .stop_ids = {}};
  const auto recorder = h.Add(request);
  request.stop.eos_ids.clear();
  request.stop.stop_ids = {'l'};
  const auto stopped = h.Add(request);
  request.stop.stop_ids.clear();
  request.stop.max_tokens = 9;
  const auto endless = h.Add(request);
  h.Run();
  EXPECT_EQ(recorder->tokens, (std::vector<TokenId>{'h', 'e', 'l', 'l', 'o', 257}));
  EXPECT_TRUE(recorder->outputs.back().is_end);
  EXPECT_FALSE(recorder->outputs.front().is_end);
  EXPECT_EQ(recorder->finish->reason, FinishReason::kStop);
  EXPECT_EQ(recorder->finish->generated_tokens, 6);
  EXPECT_EQ(stopped->tokens, (std::vector<TokenId>{'h', 'e', 'l'}));
  EXPECT_EQ(endless->tokens.size(), 9u);
  EXPECT_EQ(endless->finish->reason, FinishReason::kLength);
}

TEST(EngineCore, MinTokensHoldsTheEndBack) {
  FakeSessionOptions options;
  options.next = testing::Recite("", 10, 257);  // Wants to end at once.
  CoreHarness h(options);
  Request request;
  request.prompt = {10};
  request.sampling.temperature = 0;
  for (const int64_t min_tokens : {0, 1, 7}) {
    request.stop = {.max_tokens = 20, .min_tokens = min_tokens, .eos_ids = {257}, .stop_ids = {}};
    const auto recorder = h.Add(request);
    h.Run();
    EXPECT_EQ(recorder->finish->reason, FinishReason::kStop);
    EXPECT_EQ(recorder->tokens.size(), static_cast<size_t>(min_tokens) + 1);
    EXPECT_EQ(std::ranges::count(recorder->tokens, 257), 1);
  }
}

TEST(EngineCore, LogprobsComeWithTheirTokens) {
  CoreHarness h;
  Request request;
  request.prompt = Prompt(4);
  request.sampling.temperature = 0;
  request.stop.max_tokens = 3;
  request.top_logprobs = 2;
  const auto recorder = h.Add(request);
  h.Run();
  for (const TokenOutput& output : recorder->outputs) {
    ASSERT_TRUE(output.logprobs.has_value());
    ASSERT_EQ(output.logprobs->top.size(), 2u);
    EXPECT_EQ(output.logprobs->top[0].id, output.id);
    EXPECT_EQ(output.logprobs->top[0].logprob, output.logprobs->chosen);
    EXPECT_LE(output.logprobs->top[1].logprob, output.logprobs->chosen);
  }
}

TEST(EngineCore, AsManySequencesRunAsTheDefaultLimitSays) {
  for (const int64_t count : {kMaxRunningDefault - 1, kMaxRunningDefault, kMaxRunningDefault + 1}) {
    CoreHarness h({}, CoreOptions{});
    for (int64_t i = 0; i < count; ++i) h.Add(Prompt(2, static_cast<int32_t>(i)), 3);
    h.Step();
    EXPECT_EQ(h.core.stats().running, std::min(count, kMaxRunningDefault));
    EXPECT_EQ(h.core.stats().waiting, std::max<int64_t>(count - kMaxRunningDefault, 0));
    h.Run();
  }
}

TEST(EngineCore, CancelFreesPagesAtOnceInEveryState) {
  CoreHarness h({}, {.max_running = 2});
  const auto decoding = h.Add(Prompt(4), 50);
  h.Step();
  const auto prefilling = h.Add(Prompt(200), 5);
  const auto queued = h.Add(Prompt(4), 5);
  h.Step();
  EXPECT_EQ(h.core.stats().running, 2);
  EXPECT_EQ(h.core.stats().waiting, 1);
  EXPECT_EQ(prefilling->tokens.size(), 0u);
  for (RequestId id : {3, 2, 1}) {
    h.core.End(id, FinishReason::kCancelled, Cancelled("gone"));
    h.core.CheckIntegrity();
  }
  EXPECT_EQ(h.core.stats().kv_pages_used, 0);
  EXPECT_FALSE(h.core.has_work());
  h.core.Deliver();
  for (const auto& recorder : {decoding, prefilling, queued}) {
    ASSERT_TRUE(recorder->finish.has_value());
    EXPECT_EQ(recorder->finish->reason, FinishReason::kCancelled);
    EXPECT_EQ(recorder->finish->status.code(), Code::kCancelled);
  }
  EXPECT_EQ(h.core.stats().finished_cancelled, 3);
  h.core.End(2, FinishReason::kCancelled, Cancelled("again"));  // Unknown by now: no effect.
  EXPECT_EQ(h.core.stats().finished_cancelled, 3);
}

TEST(EngineCore, CancelAtEveryStepLeavesTheOthersAlone) {
  for (int at = 0; at < 16; ++at) {
    CoreHarness h;
    const auto first = h.Add(Prompt(70, 1), 8);
    const auto victim = h.Add(Prompt(70, 2), 8);
    const auto last = h.Add(Prompt(70, 3), 8);
    for (int i = 0; i < at; ++i) h.Step();
    h.core.End(2, FinishReason::kCancelled, Cancelled("gone"));
    h.core.CheckIntegrity();
    h.core.Deliver();
    EXPECT_TRUE(victim->finish.has_value());
    h.Run();
    EXPECT_EQ(first->tokens, Expected(h.session, Prompt(70, 1), 8));
    EXPECT_EQ(last->tokens, Expected(h.session, Prompt(70, 3), 8));
  }
}

TEST(EngineCore, ADeadlineEndsWaitingAndRunningRequests) {
  CoreHarness h({}, {.max_running = 1});
  Request request;
  request.prompt = Prompt(4);
  request.stop.max_tokens = 100;
  request.deadline = h.clock.now + milliseconds(35);
  const auto running = h.Add(request);
  const auto waiting = h.Add(request);
  const auto patient = h.Add(Prompt(4), 2);
  h.Run();
  EXPECT_EQ(running->finish->reason, FinishReason::kDeadline);
  EXPECT_EQ(running->tokens.size(), 3u);
  EXPECT_EQ(waiting->finish->reason, FinishReason::kDeadline);
  EXPECT_EQ(waiting->finish->status.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(patient->finish->reason, FinishReason::kLength);
}

TEST(EngineCore, AFailedStepFailsItsBatchAndTheEngineGoesOn) {
  FakeSessionOptions options;
  options.on_step = [](int64_t step) { return step == 2 ? Internal("broken") : Status(); };
  CoreHarness h(options, {.max_running = 2});
  const auto a = h.Add(Prompt(4, 1), 10);
  const auto b = h.Add(Prompt(4, 2), 10);
  const auto c = h.Add(Prompt(4, 3), 10);
  h.Run();
  EXPECT_EQ(a->finish->reason, FinishReason::kError);
  EXPECT_EQ(b->finish->status.message(), "broken");
  EXPECT_EQ(c->finish->reason, FinishReason::kLength);
  EXPECT_EQ(c->tokens, Expected(h.session, Prompt(4, 3), 10));
  EXPECT_EQ(h.core.stats().finished_error, 2);
}

TEST(EngineCore, EveryStepMayFailOnceWithoutHarm) {
  for (int64_t bad = 0; bad < 12; ++bad) {
    FakeSessionOptions options;
    options.on_step = [bad](int64_t step) { return step == bad ? Internal("broken") : Status(); };
    CoreHarness h(options);
    const auto a = h.Add(Prompt(100, 1), 6);
    const auto b = h.Add(Prompt(40, 2), 9);
    h.Run();
    EXPECT_TRUE(a->finish.has_value());
    EXPECT_TRUE(b->finish.has_value());
  }
}

TEST(EngineCore, CountsAndTimesWhatItDoes) {
  CoreHarness h;
  const auto recorder = h.Add(Prompt(70), 5);  // Two prefill steps.
  h.Run();
  const Stats& stats = h.core.stats();
  EXPECT_EQ(stats.prompt_tokens, 70);
  EXPECT_EQ(stats.generation_tokens, 5);
  EXPECT_EQ(stats.finished_length, 1);
  EXPECT_EQ(stats.time_to_first_token.count(), 1);
  EXPECT_NEAR(stats.time_to_first_token.sum(), 0.020, 1e-9);
  EXPECT_EQ(stats.inter_token_latency.count(), 4);
  EXPECT_NEAR(stats.inter_token_latency.sum(), 0.040, 1e-9);
  EXPECT_NEAR(stats.e2e_latency.sum(), 0.060, 1e-9);
  EXPECT_EQ(stats.request_generation_tokens.sum(), 5);
  EXPECT_EQ(recorder->finish->queue, milliseconds(10));
  EXPECT_EQ(recorder->finish->prefill, milliseconds(10));
  EXPECT_EQ(recorder->finish->decode, milliseconds(40));
}

TEST(EngineCore, AStopByTheConsumerCountsWhatItKept) {
  CoreHarness h;
  const auto recorder = h.Add(Prompt(4), 50);
  for (int i = 0; i < 6; ++i) h.Step();
  h.core.End(1, FinishReason::kStop, {}, 4);
  h.core.Deliver();
  EXPECT_EQ(recorder->finish->generated_tokens, 4);
  EXPECT_EQ(h.core.stats().request_generation_tokens.sum(), 4);
  EXPECT_EQ(h.core.stats().finished_stop, 1);
}

TEST(EngineCore, SeededSamplingDoesNotDependOnTheSchedule) {
  const auto run = [](int64_t max_rows, int company) {
    FakeSessionOptions options;
    options.shape.max_rows = max_rows;
    CoreHarness h(options);
    Request request;
    request.prompt = Prompt(30);
    request.sampling = {.temperature = 1.3, .top_k = 40, .logit_bias = {}, .seed = 5, .stream = 1};
    request.stop.max_tokens = 20;
    for (int i = 0; i < company; ++i) h.Add(Prompt(17, i), 15);
    const auto recorder = h.Add(request);
    h.Run();
    return recorder->tokens;
  };
  const std::vector<TokenId> alone = run(64, 0);
  EXPECT_EQ(run(7, 0), alone);
  EXPECT_EQ(run(64, 3), alone);
  EXPECT_EQ(run(3, 6), alone);
}

TEST(CheckRequest, BoundsAreExact) {
  FakeSession session({});
  Request request;
  request.sink = std::make_shared<Recorder>();
  request.prompt = Prompt(200);
  request.stop.max_tokens = 56;  // 256 together.
  EXPECT_TRUE(CheckRequest(request, session.shape()).ok());
  request.stop.max_tokens = 57;
  const Status status = CheckRequest(request, session.shape());
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("200"), std::string::npos);
  EXPECT_NE(status.message().find("256"), std::string::npos);
  request.stop.max_tokens = 1;
  request.prompt = Prompt(255);
  EXPECT_TRUE(CheckRequest(request, session.shape()).ok());
  request.prompt = Prompt(256);
  EXPECT_FALSE(CheckRequest(request, session.shape()).ok());
  request.prompt = {259};
  EXPECT_TRUE(CheckRequest(request, session.shape()).ok());
  request.prompt = {260};
  EXPECT_FALSE(CheckRequest(request, session.shape()).ok());
  request.prompt = {-1};
  EXPECT_FALSE(CheckRequest(request, session.shape()).ok());
  request.prompt = {};
  EXPECT_FALSE(CheckRequest(request, session.shape()).ok());
}

TEST(CheckRequest, RefusesNumbersThatAreNone) {
  FakeSession session({});
  Request request;
  request.sink = std::make_shared<Recorder>();
  request.prompt = {1};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (double SamplingParams::*field :
       {&SamplingParams::temperature, &SamplingParams::min_p, &SamplingParams::top_p,
        &SamplingParams::typical_p, &SamplingParams::repetition_penalty,
        &SamplingParams::frequency_penalty, &SamplingParams::presence_penalty}) {
    Request bad = request;
    bad.sampling.*field = nan;
    EXPECT_FALSE(CheckRequest(bad, session.shape()).ok());
    bad.sampling.*field = std::numeric_limits<double>::infinity();
    EXPECT_FALSE(CheckRequest(bad, session.shape()).ok());
  }
  Request bad = request;
  bad.sampling.logit_bias = {{1, nan}};
  EXPECT_FALSE(CheckRequest(bad, session.shape()).ok());
  bad.sampling.logit_bias = {{260, 1}};
  EXPECT_FALSE(CheckRequest(bad, session.shape()).ok());
}

TEST(CheckRequest, ListsAndLogprobsHaveLimits) {
  FakeSession session({});
  Request request;
  request.sink = std::make_shared<Recorder>();
  request.prompt = {1};
  const auto code = [&] { return CheckRequest(request, session.shape()).code(); };
  for (const int64_t size : {kLogitBiasMax - 1, kLogitBiasMax, kLogitBiasMax + 1}) {
    request.sampling.logit_bias.assign(static_cast<size_t>(size), {1, 0.5});
    EXPECT_EQ(code(), size <= kLogitBiasMax ? Code::kOk : Code::kInvalidArgument) << size;
  }
  request.sampling.logit_bias.clear();
  for (const int top : {kTopLogprobsMax - 1, kTopLogprobsMax, kTopLogprobsMax + 1}) {
    request.top_logprobs = top;
    EXPECT_EQ(code(), top <= kTopLogprobsMax ? Code::kOk : Code::kInvalidArgument) << top;
  }
}

}  // namespace
}  // namespace tessera::engine
