// SPDX-License-Identifier: Apache-2.0
//
// The prefix cache at work in the engine: what is shared, and that nobody can tell from the tokens.
#include <gtest/gtest.h>

#include "base/random.h"
#include "engine/engine_core.h"
#include "support/core_harness.h"

namespace tessera::engine {
namespace {

using testing::CoreHarness;
using testing::Expected;
using testing::FakeSessionOptions;
using testing::Prompt;
using testing::Recorder;

using Tokens = std::vector<TokenId>;

/// `shared` tokens that are the same for all users, then `own` that are not.
Tokens UserPrompt(size_t shared, size_t own, int32_t user) {
  Tokens prompt = Prompt(shared);
  const Tokens rest = Prompt(own, user + 1);
  prompt.insert(prompt.end(), rest.begin(), rest.end());
  return prompt;
}

/// Rows that the model has computed so far.
int64_t Rows(const CoreHarness& h) {
  return static_cast<int64_t>(h.core.stats().step_tokens.sum());
}

Request Greedy(Tokens prompt, int64_t max_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = 0;
  request.stop.max_tokens = max_tokens;
  return request;
}

TEST(EngineCache, ASecondPromptComputesOnlyItsLastToken) {
  CoreHarness h;
  const auto first = h.Add(Prompt(50), 3);
  h.Run();
  const int64_t before = Rows(h);
  const auto second = h.Add(Prompt(50), 3);
  h.Run();
  EXPECT_EQ(Rows(h) - before, 3);
  EXPECT_EQ(first->finish->cached_tokens, 0);
  EXPECT_EQ(second->finish->cached_tokens, 49);
  EXPECT_EQ(second->finish->cache_miss.reason, CacheMiss::Reason::kNone);
  EXPECT_EQ(second->tokens, first->tokens);
  EXPECT_EQ(h.core.stats().prefix_cache_queries, 100);
  EXPECT_EQ(h.core.stats().prefix_cache_hits, 49);
  EXPECT_EQ(h.core.stats().prompt_tokens, 100);
}

TEST(EngineCache, AConversationGoesOnFromItsAnswer) {
  CoreHarness h;
  const auto first = h.Add(Prompt(50), 10);
  h.Run();
  Tokens longer = Prompt(50);
  longer.insert(longer.end(), first->tokens.begin(), first->tokens.end());
  longer.push_back(7);
  const auto second = h.Add(longer, 2);
  h.Run();
  EXPECT_EQ(second->finish->cached_tokens, 59) << "the last token of an answer is never computed";
  EXPECT_EQ(second->tokens, Expected(h.session, longer, 2));
}

TEST(EngineCache, RequestsThatArriveTogetherComputeTheirPrefixOnce) {
  CoreHarness h({}, {.max_running = 8});
  std::vector<std::shared_ptr<Recorder>> users;
  for (int32_t user = 0; user < 8; ++user) users.push_back(h.Add(UserPrompt(48, 5, user), 1));
  EXPECT_EQ(h.Run(), 2);
  EXPECT_EQ(Rows(h), 53 + 7 * 5);
  for (int32_t user = 0; user < 8; ++user) {
    const auto& recorder = users[static_cast<size_t>(user)];
    EXPECT_EQ(recorder->finish->cached_tokens, user == 0 ? 0 : 48);
    EXPECT_EQ(recorder->tokens, Expected(h.session, UserPrompt(48, 5, user), 1));
  }
}

TEST(EngineCache, AnswersToOnePromptComputeItOnce) {
  CoreHarness h;
  Request request = Greedy(Prompt(41), 4);
  request.sampling.temperature = 1;
  std::vector<std::shared_ptr<Recorder>> choices;
  for (uint64_t stream = 0; stream < 4; ++stream) {
    request.sampling.stream = stream;
    choices.push_back(h.Add(request));
  }
  h.Run();
  EXPECT_EQ(Rows(h), 41 + 3 + 4 * 3);
  CoreHarness alone({}, {.max_running = 4, .prefix_cache_pages = 0});
  for (uint64_t stream = 0; stream < 4; ++stream) {
    request.sampling.stream = stream;
    const auto recorder = alone.Add(request);
    alone.Run();
    EXPECT_EQ(choices[stream]->tokens, recorder->tokens);
  }
}

TEST(EngineCache, ALongPrefixInSeveralStepsIsFollowedPageByPage) {
  CoreHarness h;  // 64 rows a step.
  const auto first = h.Add(UserPrompt(160, 10, 0), 2);
  const auto second = h.Add(UserPrompt(160, 10, 1), 2);
  h.Run();
  EXPECT_EQ(second->finish->cached_tokens, 160);
  EXPECT_EQ(Rows(h), 170 + 10 + 2);
  EXPECT_EQ(second->tokens, Expected(h.session, UserPrompt(160, 10, 1), 2));
}

TEST(EngineCache, WhoeverIsWaitedForMayGoAway) {
  for (int at = 0; at < 6; ++at) {
    CoreHarness h;
    h.Add(UserPrompt(160, 10, 0), 2);
    const auto second = h.Add(UserPrompt(160, 10, 1), 2);
    const auto third = h.Add(UserPrompt(160, 10, 2), 2);
    for (int i = 0; i < at; ++i) h.Step();
    h.core.End(1, FinishReason::kCancelled, Cancelled("gone"));
    h.core.CheckIntegrity();
    h.Run();
    EXPECT_EQ(second->tokens, Expected(h.session, UserPrompt(160, 10, 1), 2));
    EXPECT_EQ(third->tokens, Expected(h.session, UserPrompt(160, 10, 2), 2));
  }
}

TEST(EngineCache, ARequestMayStayOutOfIt) {
  CoreHarness h;
  h.Add(Prompt(50), 2);
  h.Run();
  const int64_t pages = h.core.stats().prefix_cache_pages;
  Request request = Greedy(Prompt(50), 2);
  request.cache_prompt = false;
  const auto out = h.Add(request);
  request.prompt = Prompt(50, 9);
  h.Add(request);
  int64_t before = Rows(h);
  h.Run();
  EXPECT_EQ(Rows(h) - before, 50 + 50 + 2);
  EXPECT_EQ(out->finish->cached_tokens, 0);
  EXPECT_EQ(out->finish->cache_miss.reason, CacheMiss::Reason::kOff);
  EXPECT_EQ(h.core.stats().prefix_cache_pages, pages) << "and leaves nothing";
  EXPECT_EQ(h.core.stats().prefix_cache_queries, 50);
  before = Rows(h);
  h.Add(Prompt(50, 9), 1);
  h.Run();
  EXPECT_EQ(Rows(h) - before, 50);
}

TEST(EngineCache, WithoutPagesItIsOff) {
  CoreHarness h({}, {.max_running = 4, .prefix_cache_pages = 0});
  for (int i = 0; i < 2; ++i) h.Add(Prompt(50), 2);
  h.Run();
  EXPECT_EQ(Rows(h), 2 * 51);
  EXPECT_EQ(h.core.stats().prefix_cache_pages, 0);
}

TEST(EngineCache, CachedPagesNeverBlockAnAdmission) {
  FakeSessionOptions options;
  options.shape.page_count = 6;
  CoreHarness h(options);
  for (int32_t salt = 0; salt < 12; ++salt) {
    const auto recorder = h.Add(Prompt(80, salt), 15);  // All six pages.
    EXPECT_EQ(h.Run(), 2 + 14);
    EXPECT_EQ(recorder->tokens, Expected(h.session, Prompt(80, salt), 15));
    EXPECT_EQ(h.core.stats().preemptions, 0);
  }
  EXPECT_GE(h.core.stats().prefix_cache_evictions, 60);
}

TEST(EngineCache, APreemptedSequenceFindsWhatIsLeftOfItsPages) {
  FakeSessionOptions options;
  options.shape.page_count = 6;
  CoreHarness h(options);
  std::vector<std::shared_ptr<Recorder>> recorders;
  for (int32_t i = 0; i < 3; ++i) recorders.push_back(h.Add(Prompt(20, i), 40));
  h.Run();
  EXPECT_GT(h.core.stats().preemptions, 0);
  EXPECT_EQ(h.core.stats().prefix_cache_hits, 0) << "finding one's own pages again is no hit";
  const int64_t with_cache = Rows(h);
  CoreHarness off(options, {.max_running = 4, .prefix_cache_pages = 0});
  for (int32_t i = 0; i < 3; ++i) off.Add(Prompt(20, i), 40);
  off.Run();
  EXPECT_LT(with_cache, Rows(off));
  for (int32_t i = 0; i < 3; ++i)
    EXPECT_EQ(recorders[static_cast<size_t>(i)]->tokens, Expected(h.session, Prompt(20, i), 40));
}

TEST(EngineCache, AFailedStepPoisonsNothing) {
  for (int64_t bad = 0; bad < 8; ++bad) {
    FakeSessionOptions options;
    options.on_step = [bad](int64_t step) { return step == bad ? Internal("broken") : Status(); };
    CoreHarness h(options);
    h.Add(UserPrompt(100, 10, 0), 3);
    h.Add(UserPrompt(100, 10, 1), 3);
    h.Run();
    const auto again = h.Add(UserPrompt(100, 10, 0), 3);
    h.Run();
    if (again->finish->reason == FinishReason::kError) continue;  // It had the failing step.
    EXPECT_EQ(again->tokens, Expected(h.session, UserPrompt(100, 10, 0), 3)) << bad;
  }
}

TEST(EngineCache, WhatAFailedRequestHadBegunIsNotStored) {
  FakeSessionOptions options;
  options.on_step = [](int64_t step) { return step == 3 ? Internal("broken") : Status(); };
  CoreHarness h(options);
  const auto failed = h.Add(Prompt(20), 9);
  h.Run();
  ASSERT_EQ(failed->tokens.size(), 3u);
  Tokens longer = Prompt(20);
  longer.insert(longer.end(), failed->tokens.begin(), failed->tokens.end());
  const auto next = h.Add(longer, 1);
  h.Run();
  EXPECT_EQ(next->finish->cached_tokens, 20) << "its prompt was stored when it was complete";
}

/// Prompts that begin alike in many ways: a random walk over few continuations.
Tokens RelatedPrompt(Random* random) {
  Tokens prompt;
  const size_t pieces = 1 + random->Below(5);
  for (size_t i = 0; i < pieces; ++i) {
    const Tokens piece = Prompt(3 + 9 * random->Below(4), static_cast<int32_t>(random->Below(3)));
    prompt.insert(prompt.end(), piece.begin(), piece.end());
  }
  return prompt;
}

struct Submitted {
  Request request;
  std::shared_ptr<Recorder> recorder;
};

/// Requests come, are cancelled and end in random order over a small pool; the tokens of each are
/// those that it would get alone.
void RunRandomSchedule(uint64_t seed, int64_t* hits, int64_t* preemptions, int64_t* evictions) {
  Random random(seed);
  FakeSessionOptions options;
  options.shape.page_tokens = 8;
  options.shape.max_rows = 3 + static_cast<int64_t>(random.Below(60));
  options.shape.page_count = 24 + static_cast<int64_t>(random.Below(40));
  const CoreOptions core{.max_running = 1 + static_cast<int64_t>(random.Below(6)),
                         .prefix_cache_pages = random.Below(4) == 0
                                                   ? static_cast<int64_t>(random.Below(20))
                                                   : kPrefixCachePagesDefault};
  CoreHarness h(options, core);
  std::vector<Submitted> all;
  int left = 40;
  for (int step = 0; left > 0 || h.core.has_work(); ++step) {
    ASSERT_LT(step, 20000) << "seed " << seed << ": no progress";
    while (left > 0 && random.Below(4) == 0) {
      --left;
      Request request = Greedy(RelatedPrompt(&random), 1 + static_cast<int64_t>(random.Below(20)));
      request.sampling.temperature = random.Below(2) == 0 ? 0 : 1.1;
      request.sampling.seed = random.Below(3);
      request.cache_prompt = random.Below(6) != 0;
      all.push_back({request, h.Add(request)});
    }
    if (!all.empty() && random.Below(20) == 0)
      h.core.End(1 + random.Below(all.size()), FinishReason::kCancelled, Cancelled("gone"));
    h.Step();
    if (::testing::Test::HasFatalFailure()) return;
  }
  *hits += h.core.stats().prefix_cache_hits;
  *preemptions += h.core.stats().preemptions;
  *evictions += h.core.stats().prefix_cache_evictions;
  EXPECT_EQ(h.core.stats().kv_pages_used, 0);
  FakeSessionOptions alone_options = options;
  alone_options.shape.page_count = 64;
  for (const Submitted& submitted : all) {
    CoreHarness alone(alone_options, {.max_running = 1, .prefix_cache_pages = 0});
    const auto oracle = alone.Add(submitted.request);
    alone.Run();
    ASSERT_TRUE(submitted.recorder->finish.has_value());
    Tokens expected = oracle->tokens;
    if (submitted.recorder->finish->reason == FinishReason::kCancelled)
      expected.resize(submitted.recorder->tokens.size());
    EXPECT_EQ(submitted.recorder->tokens, expected) << "seed " << seed;
    EXPECT_LT(submitted.recorder->finish->cached_tokens,
              static_cast<int64_t>(submitted.request.prompt.size()));
  }
}

TEST(EngineCache, NoScheduleChangesATokenOrLosesAPage) {
  int64_t hits = 0, preemptions = 0, evictions = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed)
    RunRandomSchedule(seed, &hits, &preemptions, &evictions);
  // The schedules reached what they are about.
  EXPECT_GT(hits, 10000);
  EXPECT_GT(preemptions, 20);
  EXPECT_GT(evictions, 1000);
}

}  // namespace
}  // namespace tessera::engine
