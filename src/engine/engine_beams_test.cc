// SPDX-License-Identifier: Apache-2.0
//
// Beam search in the engine: what it finds depends on the request alone, whatever the batch, the
// pages or a cancellation do.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "engine/engine_core.h"
#include "engine/logprobs.h"
#include "support/core_harness.h"

namespace tessera::engine {
namespace {

using testing::CoreHarness;
using testing::FakeSession;
using testing::FakeSessionOptions;
using testing::Prompt;
using testing::Recorder;

using Tokens = std::vector<TokenId>;

struct Asked {
  std::vector<std::shared_ptr<Recorder>> answers;  // Best first.
};

Request BeamRequest(Tokens prompt, int width, int64_t max_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.stop.max_tokens = max_tokens;
  request.beams.emplace().width = width;
  return request;
}

/// Adds it for `answers` sinks; the ids after its own are those of its beams.
Asked Add(CoreHarness* h, Request request, int answers) {
  Asked asked;
  const auto width = static_cast<RequestId>(request.beams->width);
  for (int i = 1; i < answers; ++i) {
    asked.answers.push_back(std::make_shared<Recorder>());
    request.beams->more_sinks.push_back(asked.answers.back());
  }
  asked.answers.insert(asked.answers.begin(), h->Add(std::move(request)));
  h->last_id += width - 1;
  return asked;
}

/// The search by asking the model directly, all beams at once.
std::vector<Tokens> Oracle(const FakeSession& session, const Request& request) {
  BeamSearch search(*request.beams, request.stop);
  for (;;) {
    std::vector<BeamReport> reports;
    for (const Beam& beam : search.live()) {
      Tokens context = request.prompt;
      for (const TokenOutput& token : beam.tokens) context.push_back(token.id);
      const std::vector<float> row = session.Logits(context);
      const std::vector<double> logits(row.begin(), row.end());
      const double log_sum = LogSumExp(logits);
      BeamReport report;
      for (const TokenId id : GreatestIds(logits, search.wanted())) {
        const bool is_end = std::ranges::count(request.stop.eos_ids, id) > 0;
        report.push_back({logits[static_cast<size_t>(id)] - log_sum,
                          {.id = id, .is_end = is_end, .logprobs = {}}});
      }
      reports.push_back(std::move(report));
    }
    if (search.Advance(reports).empty()) break;
  }
  std::vector<Tokens> results;
  for (const Beam& beam : search.TakeResults()) {
    results.emplace_back();
    for (const TokenOutput& token : beam.tokens) results.back().push_back(token.id);
  }
  return results;
}

void ExpectOracle(const CoreHarness& h, const Request& request, const Asked& asked) {
  const std::vector<Tokens> expected = Oracle(h.session, request);
  ASSERT_LE(asked.answers.size(), expected.size());
  for (size_t i = 0; i < asked.answers.size(); ++i) {
    EXPECT_EQ(asked.answers[i]->tokens, expected[i]) << "answer " << i;
    ASSERT_TRUE(asked.answers[i]->finish.has_value());
    EXPECT_TRUE(asked.answers[i]->finish->status.ok());
    EXPECT_EQ(asked.answers[i]->finish->generated_tokens, std::ssize(expected[i]));
  }
}

TEST(EngineBeams, FindWhatTheSearchFinds) {
  CoreHarness h;
  Request request = BeamRequest(Prompt(37), 4, 12);
  request.stop.eos_ids = {3, 77, 140};
  const Asked asked = Add(&h, request, 4);
  h.Run();
  ExpectOracle(h, request, asked);
  EXPECT_EQ(h.core.stats().prompt_tokens, 37);
}

TEST(EngineBeams, OneBeamIsGreedy) {
  CoreHarness h;
  const Asked asked = Add(&h, BeamRequest(Prompt(20), 1, 15), 1);
  h.Run();
  EXPECT_EQ(asked.answers[0]->tokens, testing::Expected(h.session, Prompt(20), 15));
}

TEST(EngineBeams, ShareTheirPages) {
  FakeSessionOptions options;
  options.shape.page_count = 16;  // 256 positions; eight beams alone would need 8 * 112.
  CoreHarness h(options, {.max_running = 8});
  const Asked asked = Add(&h, BeamRequest(Prompt(96), 8, 16), 1);
  h.Run();
  ExpectOracle(h, BeamRequest(Prompt(96), 8, 16), asked);
  EXPECT_EQ(h.core.stats().preemptions, 0);
}

TEST(EngineBeams, FewerPlacesThanBeamsOnlyTakeLonger) {
  for (const int64_t places : {1, 2, 3}) {
    CoreHarness h({}, {.max_running = places});
    const Request request = BeamRequest(Prompt(20), 5, 10);
    const Asked asked = Add(&h, request, 2);
    h.Run();
    ExpectOracle(h, request, asked);
  }
}

TEST(EngineBeams, WorkWithoutAPrefixCacheAndKeepNothing) {
  CoreHarness h({}, {.max_running = 4, .prefix_cache_pages = 0});
  const Request request = BeamRequest(Prompt(50), 3, 20);
  const Asked asked = Add(&h, request, 3);
  h.Run();
  ExpectOracle(h, request, asked);
  EXPECT_EQ(h.core.stats().prefix_cache_pages, 0);
}

TEST(EngineBeams, EndTogether) {
  for (const int steps : {1, 2, 3, 7}) {
    CoreHarness h;
    const Asked asked = Add(&h, BeamRequest(Prompt(70), 4, 50), 3);
    for (int i = 0; i < steps; ++i) h.Step();
    h.core.End(1, FinishReason::kCancelled, Cancelled("gone"));
    h.core.CheckIntegrity();
    h.core.Deliver();
    EXPECT_FALSE(h.core.has_work());
    EXPECT_EQ(h.core.stats().kv_pages_used, 0);
    for (const auto& answer : asked.answers) {
      ASSERT_TRUE(answer->finish.has_value());
      EXPECT_EQ(answer->finish->reason, FinishReason::kCancelled);
    }
  }
}

TEST(EngineBeams, ADeadlineOrAFailedStepEndsAll) {
  {
    CoreHarness h;
    Request request = BeamRequest(Prompt(20), 4, 100);
    request.deadline = h.clock.now + std::chrono::milliseconds(55);
    const Asked asked = Add(&h, std::move(request), 2);
    h.Run();
    for (const auto& answer : asked.answers)
      EXPECT_EQ(answer->finish->reason, FinishReason::kDeadline);
  }
  FakeSessionOptions options;
  options.on_step = [](int64_t step) { return step == 5 ? Internal("broken") : Status(); };
  CoreHarness h(options);
  const Asked asked = Add(&h, BeamRequest(Prompt(20), 4, 100), 2);
  h.Run();
  for (const auto& answer : asked.answers) EXPECT_EQ(answer->finish->reason, FinishReason::kError);
}

TEST(EngineBeams, PromptAndTokensHaveTheirLogprobs) {
  CoreHarness h;
  Request request = BeamRequest(Prompt(9), 3, 4);
  request.top_logprobs = 2;
  request.prompt_logprobs = 0;
  const Asked asked = Add(&h, request, 2);
  h.Run();
  for (const auto& answer : asked.answers) {
    ASSERT_TRUE(answer->prompt.has_value());
    EXPECT_EQ(answer->prompt->size(), 8u);
    Tokens context = Prompt(9);
    for (const TokenOutput& token : answer->outputs) {
      const Logprobs expected = ComputeLogprobs(h.session.Logits(context), token.id, 2);
      ASSERT_TRUE(token.logprobs.has_value());
      EXPECT_EQ(token.logprobs->chosen, expected.chosen);
      EXPECT_EQ(token.logprobs->top.size(), 2u);
      context.push_back(token.id);
    }
  }
}

TEST(EngineBeams, ImpossibleOnesAreRefused) {
  CoreHarness h;
  const auto check = [&](auto change) {
    Request request = BeamRequest(Prompt(5), 4, 5);
    request.sink = std::make_shared<Recorder>();
    change(&request);
    return CheckRequest(request, h.session.shape()).code();
  };
  EXPECT_EQ(check([](Request*) {}), Code::kOk);
  EXPECT_EQ(check([](Request* r) { r->beams->width = kBeamsMax; }), Code::kOk);
  EXPECT_EQ(check([](Request* r) { r->beams->width = kBeamsMax + 1; }), Code::kInvalidArgument);
  EXPECT_EQ(check([](Request* r) { r->beams->width = 0; }), Code::kInvalidArgument);
  EXPECT_EQ(check([](Request* r) { r->beams->more_sinks.resize(3); }), Code::kOk);
  EXPECT_EQ(check([](Request* r) { r->beams->more_sinks.resize(4); }), Code::kInvalidArgument);
  EXPECT_EQ(check([](Request* r) { r->beams->length_penalty = 1e9; }), Code::kInvalidArgument);
  EXPECT_EQ(check([](Request* r) { r->cache_prompt = false; }), Code::kInvalidArgument);
}

/// Beam searches and other requests in random order over a pool too small for them.
void RunRandomSchedule(uint64_t seed, int64_t* preemptions) {
  Random random(seed);
  FakeSessionOptions options;
  options.shape.page_tokens = 8;
  options.shape.max_rows = 3 + static_cast<int64_t>(random.Below(60));
  options.shape.page_count = 12 + static_cast<int64_t>(random.Below(20));
  CoreHarness h(options, {.max_running = 1 + static_cast<int64_t>(random.Below(6))});
  std::vector<std::pair<Request, Asked>> searches;
  std::vector<std::pair<Tokens, std::shared_ptr<Recorder>>> others;
  int left = 12;
  for (int step = 0; left > 0 || h.core.has_work(); ++step) {
    ASSERT_LT(step, 20000) << "seed " << seed << ": no progress";
    if (left > 0 && random.Below(3) == 0) {
      --left;
      const Tokens prompt = Prompt(1 + random.Below(60), static_cast<int32_t>(random.Below(3)));
      if (random.Below(2) == 0) {
        others.emplace_back(prompt, h.Add(prompt, 10));
      } else {
        Request request = BeamRequest(prompt, 1 + static_cast<int>(random.Below(6)),
                                      1 + static_cast<int64_t>(random.Below(20)));
        request.stop.eos_ids = {static_cast<TokenId>(random.Below(250))};
        const int answers =
            1 + static_cast<int>(random.Below(static_cast<uint64_t>(request.beams->width)));
        searches.emplace_back(request, Add(&h, request, answers));
      }
    }
    h.Step();
    if (::testing::Test::HasFatalFailure()) return;
  }
  *preemptions += h.core.stats().preemptions;
  EXPECT_EQ(h.core.stats().kv_pages_used, 0);
  for (const auto& [request, asked] : searches) ExpectOracle(h, request, asked);
  for (const auto& [prompt, recorder] : others)
    EXPECT_EQ(recorder->tokens, testing::Expected(h.session, prompt, 10)) << seed;
}

TEST(EngineBeams, NoScheduleChangesWhatIsFound) {
  int64_t preemptions = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    RunRandomSchedule(seed, &preemptions);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(preemptions, 50);
}

}  // namespace
}  // namespace tessera::engine
