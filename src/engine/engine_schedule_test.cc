// SPDX-License-Identifier: Apache-2.0
//
// Whom the engine serves when: the latency target, priorities, fairness between clients. No token
// depends on any of it; that is for engine_cache_test.cc and its like.
#include <gtest/gtest.h>

#include <map>

#include "engine/engine_core.h"
#include "support/core_harness.h"

namespace tessera::engine {
namespace {

using std::chrono::milliseconds;
using testing::CoreHarness;
using testing::Expected;
using testing::FakeSessionOptions;
using testing::Prompt;
using testing::Recorder;

Request Greedy(std::vector<TokenId> prompt, int64_t max_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = 0;
  request.stop.max_tokens = max_tokens;
  return request;
}

/// A core whose clock turns with the work: `step` and, for each row, `row`.
struct Timed {
  explicit Timed(CoreOptions core_options, Duration step = milliseconds(2),
                 Duration row = std::chrono::microseconds(500)) {
    FakeSessionOptions options;
    options.shape.max_seq_len = 8192;
    options.shape.page_count = 1024;
    options.shape.max_rows = 512;
    options.on_chunks = [this, step, row](std::span<const runtime::Chunk> chunks) {
      int64_t rows = 0;
      for (const runtime::Chunk& chunk : chunks) rows += std::ssize(chunk.tokens);
      last_rows = rows;
      harness->clock.now += step + row * rows;
    };
    harness = std::make_unique<CoreHarness>(std::move(options), core_options);
  }
  std::unique_ptr<CoreHarness> harness;
  int64_t last_rows = 0;
};

TEST(EngineSchedule, WhileOneReadsAStepTakesNoLongerThanTheTarget) {
  Timed timed({.max_running = 4, .target_itl = milliseconds(20)});
  CoreHarness& h = *timed.harness;
  h.Add(Prompt(64, 1), 1000);
  for (int i = 0; i < 60; ++i) h.Step();
  // The first long prompt teaches, with small chunks, what rows cost.
  h.Add(Prompt(1000, 2), 1);
  for (int i = 0; i < 60; ++i) h.Step();
  h.Add(Prompt(3000, 3), 1);
  int64_t most = 0;
  for (int i = 0; i < 20; ++i) {
    const TimePoint before = h.clock.now;
    h.Step();
    const Duration took = h.clock.now - before - milliseconds(10);  // The harness's own.
    EXPECT_LE(took, milliseconds(22));
    most = std::max(most, timed.last_rows);
  }
  EXPECT_NEAR(static_cast<double>(most), 36, 4) << "(20 - 2) / 0.5";
  EXPECT_NEAR(static_cast<double>(h.core.stats().prompt_rows), 35, 4);
}

/// The longest step while `readers` read beside a long prompt and short ones, in decode steps.
double LongestStretch(int32_t readers) {
  Timed timed({.max_running = 64});
  CoreHarness& h = *timed.harness;
  for (int32_t i = 0; i < readers; ++i) h.Add(Prompt(8, i), 4000);
  for (int i = 0; i < 80; ++i) h.Step();
  h.Add(Prompt(1000, 99), 1);  // Teaches what rows cost.
  for (int i = 0; i < 80; ++i) h.Step();
  h.Add(Prompt(3000, 98), 1);
  Duration longest{};
  for (int i = 0; i < 40; ++i) {
    if (i % 10 == 5) h.Add(Prompt(30, i), 1);
    const TimePoint before = h.clock.now;
    h.Step();
    longest = std::max(longest, h.clock.now - before - milliseconds(10));
  }
  return Seconds(longest) / Seconds(milliseconds(2) + std::chrono::microseconds(500) * readers);
}

TEST(EngineSchedule, ALongPromptMakesTheStepOfManyReadersTwiceAsLong) {
  for (const int32_t readers : {24, 32, 48}) {
    const double stretch = LongestStretch(readers);
    EXPECT_LE(stretch, 2.1) << readers;
    EXPECT_GE(stretch, 1.7) << readers << ": and no less";
  }
}

TEST(EngineSchedule, APromptThatNobodyReadsBesideIsTakenWhole) {
  Timed timed({.max_running = 4, .target_itl = milliseconds(10)});
  CoreHarness& h = *timed.harness;
  h.Add(Prompt(64, 1), 3);
  h.Run();
  h.Add(Prompt(1024, 2), 1);
  EXPECT_EQ(h.Run(), 2);
}

TEST(EngineSchedule, WithoutATargetChunksAreWholeSteps) {
  Timed timed({.max_running = 4, .target_itl = Duration::zero()});
  CoreHarness& h = *timed.harness;
  h.Add(Prompt(64, 1), 100);
  for (int i = 0; i < 10; ++i) h.Step();
  h.Add(Prompt(2000, 2), 1);
  h.Step();
  EXPECT_EQ(timed.last_rows, 512);
}

TEST(EngineSchedule, AShortPromptDoesNotWaitForALongOne) {
  Timed timed({.max_running = 4});
  CoreHarness& h = *timed.harness;
  h.Add(Prompt(4000, 1), 5);
  h.Step();
  const auto quick = h.Add(Prompt(30, 2), 5);
  h.Step();
  EXPECT_EQ(quick->tokens.size(), 1u) << "its first token comes with the next step";
  h.Run();
  EXPECT_EQ(quick->tokens, Expected(h.session, Prompt(30, 2), 5));
}

TEST(EngineSchedule, APriorityOvertakesTheQueueAndTakesAPlace) {
  CoreHarness h({}, {.max_running = 2});
  std::vector<std::shared_ptr<Recorder>> others;
  for (int i = 0; i < 5; ++i) others.push_back(h.Add(Prompt(20, i), 40));
  for (int i = 0; i < 3; ++i) h.Step();
  Request request = Greedy(Prompt(15, 9), 4);
  request.priority = -1;
  const auto urgent = h.Add(std::move(request));
  for (int i = 0; i < 4; ++i) h.Step();
  ASSERT_TRUE(urgent->finish.has_value());
  EXPECT_EQ(h.core.stats().preemptions, 1);
  h.Run();
  EXPECT_EQ(urgent->tokens, Expected(h.session, Prompt(15, 9), 4));
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(others[static_cast<size_t>(i)]->tokens, Expected(h.session, Prompt(20, i), 40));
}

TEST(EngineSchedule, ALowerPriorityWaits) {
  CoreHarness h({}, {.max_running = 1});
  Request low = Greedy(Prompt(10, 1), 3);
  low.priority = 7;
  h.Add(Greedy(Prompt(10, 0), 5));
  h.Step();
  const auto last = h.Add(std::move(low));
  const auto first = h.Add(Greedy(Prompt(10, 2), 3));
  while (!first->finish.has_value()) h.Step();
  EXPECT_TRUE(last->tokens.empty());
  h.Run();
  EXPECT_EQ(last->tokens.size(), 3u);
}

TEST(EngineSchedule, AClientWithManyRequestsDoesNotCrowdOutOneWithFew) {
  CoreHarness h({}, {.max_running = 2});
  std::vector<std::shared_ptr<Recorder>> crowd, few;
  for (int i = 0; i < 20; ++i) {
    Request request = Greedy(Prompt(20, i), 10);
    request.client = 1;
    crowd.push_back(h.Add(std::move(request)));
  }
  for (int i = 0; i < 15; ++i) h.Step();
  for (int i = 0; i < 3; ++i) {
    Request request = Greedy(Prompt(20, 50 + i), 10);
    request.client = 2;
    few.push_back(h.Add(std::move(request)));
  }
  int finished = 0;
  while (!few.back()->finish.has_value()) {
    h.Step();
    finished = 0;
    for (const auto& recorder : crowd) finished += recorder->finish.has_value() ? 1 : 0;
  }
  EXPECT_LT(finished, 9) << "in order of arrival it would have been all 20";
  h.Run();
}

TEST(EngineSchedule, TheRateOfTheQueueIsMeasured) {
  CoreHarness h({}, {.max_running = 1});
  EXPECT_EQ(h.core.stats().admissions_per_second, 0);
  for (int i = 0; i < 40; ++i) h.Add(Prompt(5, i), 10);  // Each takes 10 steps of 10 ms.
  for (int i = 0; i < 350; ++i) h.Step();
  EXPECT_NEAR(h.core.stats().admissions_per_second, 10, 0.7);
}

}  // namespace
}  // namespace tessera::engine
