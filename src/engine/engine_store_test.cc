// SPDX-License-Identifier: Apache-2.0
//
// The page store at work in the engine: what memory gave up is read again instead of computed, the
// others go on meanwhile, and slow, lost or missing pages cost nobody more than computing would.
#include <gtest/gtest.h>

#include "engine/engine_core.h"
#include "engine/kv_identity.h"
#include "support/core_harness.h"

namespace tessera::engine {
namespace {

using testing::CoreHarness;
using testing::Expected;
using testing::FakePageStore;
using testing::FakeSession;
using testing::FakeSessionOptions;
using testing::Prompt;
using testing::Recorder;
using Reason = CacheMiss::Reason;
using std::chrono::milliseconds;

constexpr int64_t kRunning = 4;

/// Rows that the model has computed so far.
int64_t Rows(const CoreHarness& h) {
  return static_cast<int64_t>(h.core.stats().step_tokens.sum());
}

/// Runs a prompt in an engine that ends and leaves its pages to the store.
void Leave(FakePageStore* store, const std::vector<TokenId>& prompt, int64_t tokens = 2) {
  CoreHarness h({}, {kRunning}, store);
  h.Add(prompt, tokens);
  h.Run();
  h.core.SpillAll(std::chrono::seconds(1));
}

/// Until nothing is left to do; counts the steps that had nothing to run.
int RunCountingStalls(CoreHarness* h) {
  int stalls = 0;
  for (int step = 0; h->core.has_work() && step < 1000; ++step) {
    h->Step();
    stalls += h->core.has_work() && h->core.is_stalled() ? 1 : 0;
  }
  EXPECT_FALSE(h->core.has_work());
  return stalls;
}

TEST(EngineStore, ARestartedEngineFindsTheWholePagesOfThePromptAndAnswersTheSame) {
  FakePageStore store({});
  Leave(&store, Prompt(100));
  EXPECT_EQ(store.written, 6);
  CoreHarness h({}, {kRunning}, &store);
  const auto again = h.Add(Prompt(100), 5);
  h.Run();
  EXPECT_EQ(again->finish->cached_tokens, 96);
  EXPECT_EQ(Rows(h), 4 + 4);
  EXPECT_EQ(again->tokens, Expected(h.session, Prompt(100), 5));
  EXPECT_EQ(h.core.stats().store_hits, 6);
  EXPECT_EQ(h.core.stats().prefix_cache_hits, 96);
}

TEST(EngineStore, TheLastTokenIsComputedInAnyCase) {
  FakePageStore store({});
  Leave(&store, Prompt(96));
  CoreHarness h({}, {kRunning}, &store);
  const auto again = h.Add(Prompt(96), 1);
  h.Run();
  EXPECT_EQ(again->finish->cached_tokens, 80);
  EXPECT_EQ(again->tokens, Expected(h.session, Prompt(96), 1));
}

TEST(EngineStore, PagesThatMemoryGaveUpComeBack) {
  FakePageStore store({});
  FakeSessionOptions options;
  options.shape.page_count = 8;
  CoreHarness h(options, {kRunning}, &store);
  h.Add(Prompt(100), 2);
  h.Run();
  h.Add(Prompt(100, 5), 2);
  h.Run();
  EXPECT_GT(h.core.stats().prefix_cache_evictions, 0);
  const auto again = h.Add(Prompt(100), 2);
  h.Run();
  EXPECT_EQ(again->finish->cached_tokens, 96);
  EXPECT_EQ(again->tokens, Expected(h.session, Prompt(100), 2));
}

TEST(EngineStore, OthersGoOnWhileOneWaits) {
  FakePageStore store({.ticks_max = 0, .reads_max = 2});
  Leave(&store, Prompt(100));
  CoreHarness h({}, {kRunning}, &store);
  const auto busy = h.Add(Prompt(10, 3), 50);
  h.Step();
  const auto waits = h.Add(Prompt(100), 5);
  const int64_t before = static_cast<int64_t>(busy->tokens.size());
  int64_t while_waiting = 0;
  while (waits->tokens.empty()) {
    h.Step();
    while_waiting = static_cast<int64_t>(busy->tokens.size()) - before;
  }
  EXPECT_GE(while_waiting, 1);
  h.Run();
  EXPECT_EQ(waits->finish->cached_tokens, 96);
  EXPECT_EQ(waits->tokens, Expected(h.session, Prompt(100), 5));
  EXPECT_EQ(busy->tokens, Expected(h.session, Prompt(10, 3), 50));
}

TEST(EngineStore, WhileNothingElseRunsTheEngineWaitsWithoutStepping) {
  FakePageStore store({.seed = 3, .ticks_max = 6});
  Leave(&store, Prompt(100));
  CoreHarness h({}, {kRunning}, &store);
  const auto again = h.Add(Prompt(100), 2);
  EXPECT_GT(RunCountingStalls(&h), 0);
  EXPECT_EQ(h.core.stats().steps, 2);
  EXPECT_EQ(again->finish->cached_tokens, 96);
}

TEST(EngineStore, PatienceEndsAndThePromptIsComputed) {
  FakePageStore store({.seed = 1, .ticks_max = 1'000'000'000});
  Leave(&store, Prompt(100));
  CoreHarness h({}, {kRunning}, &store);
  const auto again = h.Add(Prompt(100), 5);
  h.Step();
  EXPECT_TRUE(h.core.is_stalled());
  ASSERT_TRUE(h.core.wake_at().has_value());
  EXPECT_EQ(*h.core.wake_at() - h.clock.now, kStorePatienceDefault);
  h.clock.now = *h.core.wake_at() - milliseconds(11);
  h.Step();
  EXPECT_TRUE(h.core.is_stalled());
  h.clock.now = *h.core.wake_at();
  EXPECT_FALSE(h.core.is_stalled());
  h.Run();
  EXPECT_EQ(again->tokens, Expected(h.session, Prompt(100), 5));
  EXPECT_EQ(again->finish->cached_tokens, 0);
  EXPECT_EQ(again->finish->cache_miss.reason, Reason::kSlowStore);
  EXPECT_EQ(again->finish->cache_miss.position, 0);
  EXPECT_EQ(h.core.stats().store_given_up, 1);
}

TEST(EngineStore, AStoreThatIsSlowerThanComputingIsNotWaitedFor) {
  for (const bool is_slow : {false, true}) {
    CoreHarness* harness = nullptr;
    FakeSessionOptions options;
    options.on_chunks = [&](std::span<const runtime::Chunk> chunks) {  // 1 ms a row.
      for (const runtime::Chunk& chunk : chunks)
        harness->clock.now += milliseconds(1) * std::ssize(chunk.tokens);
    };
    FakePageStore store(
        {.seed = 5, .ticks_max = 4, .read_time = is_slow ? milliseconds(17) : milliseconds(15)});
    Leave(&store, Prompt(100));
    CoreHarness h(options, {kRunning}, &store);
    harness = &h;
    h.Add(Prompt(60, 9), 1);  // Shows what a row costs.
    h.Run();
    const auto again = h.Add(Prompt(100), 1);
    const int stalls = RunCountingStalls(&h);
    EXPECT_EQ(stalls > 0, !is_slow);
    EXPECT_EQ(again->finish->cache_miss.reason == Reason::kSlowStore, is_slow);
    EXPECT_EQ(again->tokens, Expected(h.session, Prompt(100), 1));
  }
}

TEST(EngineStore, ALostPageEndsTheReadingAndTheRestIsComputed) {
  FakePageStore store({});
  Leave(&store, Prompt(100));
  PageHash hash = store.root();
  const auto prompt = Prompt(100);
  for (size_t i = 0; i < 4; ++i) hash = HashOfPage(hash, std::span(prompt).subspan(i * 16, 16));
  store.Damage(hash);
  CoreHarness h({}, {kRunning}, &store);
  const auto again = h.Add(Prompt(100), 3);
  h.Run();
  EXPECT_EQ(again->finish->cached_tokens, 48);
  EXPECT_EQ(again->finish->cache_miss.reason, Reason::kLostInStore);
  EXPECT_EQ(again->finish->cache_miss.position, 48);
  EXPECT_EQ(again->tokens, Expected(h.session, Prompt(100), 3));
}

TEST(EngineStore, WhatIsNotThereIsCountedAndComputed) {
  FakePageStore store({});
  CoreHarness h({}, {kRunning}, &store);
  h.Add(Prompt(100), 1);
  h.Run();
  EXPECT_EQ(h.core.stats().store_misses, 6);
  EXPECT_EQ(h.core.stats().store_hits, 0);
}

TEST(EngineStore, APreemptedSequenceGetsItsPagesBack) {
  FakePageStore store({});
  FakeSessionOptions options;
  options.shape.page_count = 6;
  CoreHarness h(options, {kRunning}, &store);
  std::vector<std::shared_ptr<Recorder>> recorders;
  for (int32_t i = 0; i < 3; ++i) recorders.push_back(h.Add(Prompt(20, i), 40));
  h.Run();
  EXPECT_GT(h.core.stats().preemptions, 0);
  EXPECT_GT(h.core.stats().store_hits, 0);
  for (int32_t i = 0; i < 3; ++i)
    EXPECT_EQ(recorders[static_cast<size_t>(i)]->tokens, Expected(h.session, Prompt(20, i), 40));
}

TEST(EngineStore, WhoWaitsForPagesCanBeCancelled) {
  FakePageStore store({.seed = 1, .ticks_max = 1'000'000'000});
  Leave(&store, Prompt(100));
  CoreHarness h({}, {kRunning}, &store);
  const auto gone = h.Add(Prompt(100), 5);
  h.Step();
  EXPECT_TRUE(h.core.is_stalled());
  h.core.End(1, FinishReason::kCancelled, Cancelled("gone"));
  h.core.Deliver();
  EXPECT_FALSE(h.core.has_work());
  EXPECT_EQ(gone->finish->reason, FinishReason::kCancelled);
  EXPECT_EQ(h.core.stats().kv_pages_used, 0);
  EXPECT_FALSE(h.core.wake_at().has_value());
}

TEST(EngineStore, WhoStaysOutOfTheCacheStaysOutOfTheStore) {
  FakePageStore store({});
  CoreHarness h({}, {kRunning}, &store);
  Request request;
  request.prompt = Prompt(100);
  request.stop.max_tokens = 1;
  request.cache_prompt = false;
  h.Add(request);
  h.Run();
  h.core.SpillAll(std::chrono::seconds(1));
  EXPECT_EQ(store.written, 0);
}

TEST(EngineStore, ManyWhoWaitForTheSamePagesGetThemOnce) {
  FakePageStore store({.seed = 2, .ticks_max = 5});
  Leave(&store, Prompt(100));
  CoreHarness h({}, {kRunning}, &store);
  std::vector<std::shared_ptr<Recorder>> all;
  for (int i = 0; i < 6; ++i) all.push_back(h.Add(Prompt(100), 3));
  h.Run();
  EXPECT_EQ(h.core.stats().store_hits, 6);
  for (const auto& one : all) {
    EXPECT_GE(one->finish->cached_tokens, 96);
    EXPECT_EQ(one->tokens, Expected(h.session, Prompt(100), 3));
  }
}

TEST(KvIdentity, IsOfTheModelAndOfWhatItComputes) {
  FakeSessionOptions options;
  FakeSession session(options), same(options);
  const auto name = KvIdentity("model", &session);
  ASSERT_TRUE(name.has_value()) << name.error().ToString();
  EXPECT_EQ(*name, *KvIdentity("model", &session));
  EXPECT_EQ(*name, *KvIdentity("model", &same));
  EXPECT_NE(*name, *KvIdentity("another", &session));
  options.next = [](std::span<const int32_t>) { return 7; };  // Other numbers under the same name.
  FakeSession other(options);
  EXPECT_NE(*name, *KvIdentity("model", &other));
}

}  // namespace
}  // namespace tessera::engine
