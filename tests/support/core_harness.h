// SPDX-License-Identifier: Apache-2.0
//
// CoreHarness: an EngineCore over a FakeSession on a clock that the test turns, its invariants
// checked after every step. For tests of the engine layer.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine_core.h"
#include "support/fake_page_store.h"
#include "support/fake_session.h"

namespace tessera::testing {

class TurnedClock : public Clock {
 public:
  TimePoint Now() const override { return now; }
  int64_t UnixSeconds() const override { return 1'700'000'000; }
  TimePoint now{std::chrono::seconds(1000)};
};

struct Recorder : engine::Sink {
  void OnPrefill(engine::PrefillProgress step) override {
    EXPECT_TRUE(tokens.empty()) << "before any token";
    progress.push_back(step);
  }
  void OnEmbedding(std::vector<float> pooled) override {
    EXPECT_TRUE(embedding.empty()) << "once";
    embedding = std::move(pooled);
  }
  void OnPrompt(engine::PromptLogprobs logprobs) override {
    EXPECT_TRUE(tokens.empty() && !prompt.has_value()) << "once, before any token";
    prompt = std::move(logprobs);
  }
  void OnToken(engine::TokenOutput token) override {
    EXPECT_FALSE(finish.has_value()) << "nothing comes after the finish";
    tokens.push_back(token.id);
    outputs.push_back(std::move(token));
  }
  void OnFinish(engine::Finish f) override {
    EXPECT_FALSE(finish.has_value()) << "one finish";
    finish = std::move(f);
  }
  std::vector<engine::TokenId> tokens;
  std::vector<engine::TokenOutput> outputs;
  std::optional<engine::PromptLogprobs> prompt;
  std::vector<engine::PrefillProgress> progress;
  std::vector<float> embedding;
  std::optional<engine::Finish> finish;
};

inline std::vector<engine::TokenId> Prompt(size_t length, int32_t salt = 0) {
  std::vector<engine::TokenId> prompt(length);
  for (size_t i = 0; i < length; ++i)
    prompt[i] = static_cast<engine::TokenId>((i * 7 + static_cast<size_t>(salt) * 31) % 250);
  return prompt;
}

struct CoreHarness {
  explicit CoreHarness(FakeSessionOptions options = {}, engine::CoreOptions core_options = {4},
                       FakePageStore* page_store = nullptr)
      : store(page_store),
        session(std::move(options)),
        core(&session, WithStore(core_options, page_store), &clock) {}

  static engine::CoreOptions WithStore(engine::CoreOptions options, engine::PageStore* store) {
    options.store = store;
    return options;
  }

  std::shared_ptr<Recorder> Add(engine::Request request) {
    auto recorder = std::make_shared<Recorder>();
    request.sink = recorder;
    request.arrival = clock.now;
    const Status status = CheckRequest(request, session.shape());
    EXPECT_TRUE(status.ok()) << status.ToString();
    core.Add(++last_id, std::move(request));
    return recorder;
  }
  /// Greedy.
  std::shared_ptr<Recorder> Add(std::vector<engine::TokenId> prompt, int64_t max_tokens) {
    engine::Request request;
    request.prompt = std::move(prompt);
    request.stop.max_tokens = max_tokens;
    request.sampling.temperature = 0;
    return Add(std::move(request));
  }
  void Step() {
    clock.now += std::chrono::milliseconds(10);
    if (store != nullptr) store->Tick();
    core.Step();
    core.CheckIntegrity();
    core.Deliver();
  }
  int Run(int limit = 10000) {
    int steps = 0;
    while (core.has_work() && steps < limit) {
      // Masks are made on other threads; reads come with a step's tick.
      while (store == nullptr && core.is_stalled()) std::this_thread::yield();
      Step();
      ++steps;
    }
    EXPECT_FALSE(core.has_work());
    EXPECT_EQ(core.stats().kv_pages_used, 0) << "all pages came back";
    return steps;
  }

  TurnedClock clock;
  FakePageStore* const store;
  FakeSession session;
  engine::EngineCore core;
  engine::RequestId last_id = 0;
};

/// What the model says greedily after `context`, by asking it directly.
inline std::vector<engine::TokenId> Expected(const FakeSession& session,
                                             std::vector<engine::TokenId> context, int64_t n) {
  std::vector<engine::TokenId> tokens;
  for (int64_t i = 0; i < n; ++i) {
    const std::vector<float> logits = session.Logits(context);
    tokens.push_back(
        static_cast<engine::TokenId>(std::ranges::max_element(logits) - logits.begin()));
    context.push_back(tokens.back());
  }
  return tokens;
}

}  // namespace tessera::testing
