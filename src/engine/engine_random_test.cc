// SPDX-License-Identifier: Apache-2.0
//
// The differential test of the whole engine: requests of all kinds, in random company and order,
// over random pools, rows, latency targets, with cancellations, with a store of pages that is late
// or loses them or was filled by an earlier run, give what each gets alone.
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "engine/engine_core.h"
#include "support/core_harness.h"
#include "support/scale.h"

namespace tessera::engine {
namespace {

using testing::CoreHarness;
using testing::FakePageStore;
using testing::FakeSessionOptions;
using testing::Prompt;
using testing::Recorder;

using Tokens = std::vector<TokenId>;

/// What the schedules met, so that the test cannot pass by meeting nothing.
struct Met {
  int64_t hits = 0, preemptions = 0, evictions = 0, accepted = 0, rejected = 0, cancelled = 0;
  int64_t written = 0, read = 0, adopted = 0, given_up = 0, stalled = 0;
};

struct Submitted {
  Request request;
  std::vector<std::shared_ptr<Recorder>> answers;  // One, or the beams', best first.
};

/// Prompts that begin alike in many ways, with much that recurs.
Tokens RandomPrompt(Random* random) {
  Tokens prompt;
  const size_t pieces = 1 + random->Below(5);
  for (size_t i = 0; i < pieces; ++i) {
    const Tokens piece = Prompt(2 + 9 * random->Below(4), static_cast<int32_t>(random->Below(3)));
    prompt.insert(prompt.end(), piece.begin(), piece.end());
  }
  return prompt;
}

void RandomSampling(Random* random, SamplingParams* sampling) {
  sampling->temperature = random->Below(2) == 0 ? 0 : 0.3 + random->Uniform();
  sampling->seed = random->Below(3);
  sampling->stream = random->Below(2);
  if (random->Below(4) == 0) sampling->top_p = 0.8;
  if (random->Below(4) == 0) sampling->top_k = 20;
  if (random->Below(4) == 0) sampling->repetition_penalty = 1.2;
  if (random->Below(4) == 0) sampling->frequency_penalty = 0.4;
  if (random->Below(5) == 0) sampling->dry = {.multiplier = 0.8, .breakers = nullptr};
  if (random->Below(5) == 0) sampling->xtc = {.probability = 0.5, .threshold = 0.05};
}

Request RandomRequest(Random* random) {
  Request request;
  request.prompt = RandomPrompt(random);
  RandomSampling(random, &request.sampling);
  request.stop.max_tokens = 1 + static_cast<int64_t>(random->Below(25));
  if (random->Below(3) == 0) request.stop.min_tokens = request.stop.max_tokens / 2;
  request.stop.eos_ids = {static_cast<TokenId>(random->Below(250)),
                          static_cast<TokenId>(random->Below(250))};
  request.cache_prompt = random->Below(6) != 0;
  if (random->Below(3) == 0) request.top_logprobs = static_cast<int>(random->Below(3));
  if (random->Below(6) == 0) request.prompt_logprobs = static_cast<int>(random->Below(3));
  request.priority = static_cast<int32_t>(random->Below(3)) - 1;
  request.client = random->Below(4);
  if (random->Below(8) == 0) {
    request.cache_prompt = true;
    request.beams.emplace().width = 1 + static_cast<int>(random->Below(4));
    request.beams->length_penalty = random->Uniform() * 2;
  }
  return request;
}

Submitted Submit(CoreHarness* h, const Request& request, size_t answers) {
  Submitted submitted{.request = request, .answers = {}};
  Request asked = request;
  for (size_t i = 1; i < answers; ++i) {
    submitted.answers.push_back(std::make_shared<Recorder>());
    asked.beams->more_sinks.push_back(submitted.answers.back());
  }
  submitted.answers.insert(submitted.answers.begin(), h->Add(std::move(asked)));
  if (request.beams.has_value()) h->last_id += static_cast<RequestId>(request.beams->width) - 1;
  return submitted;
}

void ExpectSameLogprobs(const Logprobs& a, const Logprobs& b) {
  EXPECT_EQ(a.chosen, b.chosen);
  EXPECT_EQ(a.rank, b.rank);
  ASSERT_EQ(a.top.size(), b.top.size());
  for (size_t i = 0; i < a.top.size(); ++i) {
    EXPECT_EQ(a.top[i].id, b.top[i].id);
    EXPECT_EQ(a.top[i].logprob, b.top[i].logprob);
  }
}

/// `mine` is what `alone` is, up to where it was cancelled.
void ExpectSame(const Recorder& mine, const Recorder& alone) {
  ASSERT_TRUE(mine.finish.has_value() && alone.finish.has_value());
  ASSERT_LE(mine.tokens.size(), alone.tokens.size());
  if (mine.finish->reason != FinishReason::kCancelled) {
    EXPECT_EQ(mine.finish->reason, alone.finish->reason);
    EXPECT_EQ(mine.tokens.size(), alone.tokens.size());
  }
  for (size_t i = 0; i < mine.tokens.size(); ++i) {
    ASSERT_EQ(mine.tokens[i], alone.tokens[i]) << "token " << i;
    ASSERT_EQ(mine.outputs[i].is_end, alone.outputs[i].is_end);
    ASSERT_EQ(mine.outputs[i].logprobs.has_value(), alone.outputs[i].logprobs.has_value());
    if (mine.outputs[i].logprobs.has_value())
      ExpectSameLogprobs(*mine.outputs[i].logprobs, *alone.outputs[i].logprobs);
  }
  if (!mine.prompt.has_value()) return;
  ASSERT_TRUE(alone.prompt.has_value());
  ASSERT_EQ(mine.prompt->size(), alone.prompt->size());
  for (size_t i = 0; i < mine.prompt->size(); ++i)
    ExpectSameLogprobs((*mine.prompt)[i], (*alone.prompt)[i]);
}

FakeSessionOptions RandomSession(Random* random, CoreHarness** harness) {
  FakeSessionOptions options;
  options.shape.page_tokens = int64_t{1} << (1 + random->Below(4));
  options.shape.max_rows = 3 + static_cast<int64_t>(random->Below(60));
  const int64_t positions = 200 + static_cast<int64_t>(random->Below(400));
  options.shape.page_count = positions / options.shape.page_tokens;
  if (random->Below(2) == 0)  // Says much again, so that guesses are right.
    options.next = [](std::span<const int32_t> context) {
      for (size_t i = context.size() - 1; i-- > 0;)
        if (context[i] == context.back()) return context[i + 1];
      return 3;
    };
  options.on_chunks = [harness](std::span<const runtime::Chunk> chunks) {
    int64_t rows = 0;
    for (const runtime::Chunk& chunk : chunks) rows += std::ssize(chunk.tokens);
    (*harness)->clock.now += std::chrono::milliseconds(3) + std::chrono::microseconds(200) * rows;
  };
  return options;
}

FakePageStore RandomStore(Random* random) {
  return FakePageStore({.seed = (*random)(),
                        .ticks_max = static_cast<int>(random->Below(12)),
                        .loss = random->Below(3) == 0 ? 0.2 : 0,
                        .drop = random->Below(3) == 0 ? 0.2 : 0,
                        .reads_max = 1 + random->Below(40),
                        .read_time = std::chrono::milliseconds(random->Below(20))});
}

/// With a store that already has pages of other schedules, the tokens stay the same.
void RunSchedule(uint64_t seed, FakePageStore* store, Met* met);

void RunWithStore(uint64_t seed, Met* met) {
  Random random(seed + 1000);
  if (random.Below(3) == 0) return RunSchedule(seed, nullptr, met);
  FakePageStore store = RandomStore(&random);
  RunSchedule(seed, &store, met);
  if (random.Below(3) != 0) return;
  RunSchedule(seed, &store, met);  // As after a restart.
}

void RunSchedule(uint64_t seed, FakePageStore* store, Met* met) {
  SCOPED_TRACE(seed);
  Random random(seed);
  CoreHarness* harness = nullptr;
  const FakeSessionOptions options = RandomSession(&random, &harness);
  const CoreOptions core{
      .max_running = 1 + static_cast<int64_t>(random.Below(6)),
      .prefix_cache_pages =
          random.Below(4) == 0 ? static_cast<int64_t>(random.Below(20)) : kPrefixCachePagesDefault,
      .target_itl = std::chrono::milliseconds(random.Below(3) * 5),
      .speculation = random.Below(3) == 0 ? Speculation::kOff : Speculation::kNgram};
  CoreHarness h(options, core, store);
  harness = &h;
  std::vector<Submitted> all;
  std::vector<RequestId> ids;
  int left = 40;
  for (int step = 0; left > 0 || h.core.has_work(); ++step) {
    ASSERT_LT(step, 20000) << "no progress";
    while (left > 0 && random.Below(4) == 0) {
      --left;
      const Request request = RandomRequest(&random);
      ids.push_back(h.last_id + 1);
      const size_t answers = request.beams.has_value()
                                 ? 1 + random.Below(static_cast<uint64_t>(request.beams->width))
                                 : 1;
      all.push_back(Submit(&h, request, answers));
    }
    if (!ids.empty() && random.Below(25) == 0)
      h.core.End(ids[random.Below(ids.size())], FinishReason::kCancelled, Cancelled("gone"));
    h.Step();
    met->stalled += h.core.has_work() && h.core.is_stalled() ? 1 : 0;
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_EQ(h.core.stats().kv_pages_used, 0);
  h.core.SpillAll(std::chrono::seconds(1));
  FakeSessionOptions roomy = options;
  roomy.shape.page_count = 1024 / roomy.shape.page_tokens;
  for (const Submitted& submitted : all) {
    CoreHarness* quiet = nullptr;
    roomy.on_chunks = nullptr;
    CoreHarness alone(roomy, {.max_running = 1, .prefix_cache_pages = 0});
    quiet = &alone;
    const Submitted oracle = Submit(quiet, submitted.request, submitted.answers.size());
    alone.Run();
    for (size_t i = 0; i < submitted.answers.size(); ++i) {
      ExpectSame(*submitted.answers[i], *oracle.answers[i]);
      met->cancelled += submitted.answers[i]->finish->reason == FinishReason::kCancelled ? 1 : 0;
    }
    if (::testing::Test::HasFailure()) return;
  }
  const Stats& stats = h.core.stats();
  met->hits += stats.prefix_cache_hits;
  met->preemptions += stats.preemptions;
  met->evictions += stats.prefix_cache_evictions;
  met->accepted += stats.draft_accepted;
  met->rejected += stats.draft_tokens - stats.draft_accepted;
  met->adopted += stats.store_hits;
  met->given_up += stats.store_given_up;
  if (store == nullptr) return;
  met->written += std::exchange(store->written, 0);
  met->read += std::exchange(store->read, 0);
}

TEST(EngineRandom, NobodyCanTellTheScheduleFromTheAnswer) {
  constexpr int64_t kSchedules = testing::Scaled(120, 24);
  Met met;
  for (uint64_t seed = 1; seed <= kSchedules; ++seed) {
    RunWithStore(seed, &met);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(met.hits, 80 * kSchedules);
  EXPECT_GT(met.preemptions, kSchedules);
  EXPECT_GT(met.evictions, 8 * kSchedules);
  EXPECT_GT(met.accepted, 8 * kSchedules);
  EXPECT_GT(met.rejected, 2 * kSchedules);
  EXPECT_GT(met.cancelled, kSchedules / 3);
  EXPECT_GT(met.written, 8 * kSchedules);
  EXPECT_GT(met.read, 8 * kSchedules);
  EXPECT_GT(met.adopted, 8 * kSchedules);
  EXPECT_GT(met.given_up, kSchedules / 4);
  EXPECT_GT(met.stalled, kSchedules / 4);
}

}  // namespace
}  // namespace tessera::engine
