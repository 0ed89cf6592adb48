// SPDX-License-Identifier: Apache-2.0
//
// How soon a cancelled request is over, in steps of the model: in every state, beside others.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/random.h"
#include "engine/engine.h"
#include "support/fake_session.h"
#include "support/scale.h"

namespace tessera::engine {
namespace {

using testing::FakeSession;
using testing::FakeSessionOptions;

/// Notes in which step it was over, and what had been said by then.
struct Watcher : Sink {
  explicit Watcher(const std::atomic<int64_t>* steps) : steps_(steps) {}
  void OnToken(TokenOutput) override { ++tokens; }
  void OnFinish(Finish f) override {
    reason = f.reason;
    finished_at = steps_->load();
    is_over = true;
  }
  const std::atomic<int64_t>* steps_;
  std::atomic<int64_t> tokens{0};
  FinishReason reason{};
  int64_t finished_at = 0;
  std::atomic<bool> is_over{false};
};

TEST(EngineCancel, IsOverWithinOneStepInEveryState) {
  constexpr int64_t kRequests = testing::Scaled(3000, 300);
  std::atomic<int64_t> steps{0};  // Begun.
  FakeSessionOptions options;
  options.shape.page_count = 64;
  options.on_step = [&](int64_t) {
    ++steps;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    return Status();
  };
  auto engine = Engine::Start(std::make_unique<FakeSession>(options),
                              {.max_running = 6, .queue_length = 64}, Clock::Real());
  ASSERT_TRUE(engine.has_value());
  Random random(7);
  std::vector<int64_t> latencies;
  int64_t queued = 0, prefilling = 0, decoding = 0;
  std::vector<std::pair<RequestId, std::shared_ptr<Watcher>>> open;
  for (int64_t i = 0; i < kRequests; ++i) {
    while (open.size() < 16) {
      Request request;
      request.prompt.resize(1 + random.Below(120), static_cast<TokenId>(random.Below(200)));
      request.stop.max_tokens = 100;
      request.arrival = Clock::Real().Now();
      auto watcher = std::make_shared<Watcher>(&steps);
      request.sink = watcher;
      const auto id = (*engine)->Submit(std::move(request));
      ASSERT_TRUE(id.has_value());
      open.emplace_back(*id, std::move(watcher));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random.Below(400)));
    const size_t victim = random.Below(open.size());
    const auto [id, watcher] = open[victim];
    open.erase(open.begin() + static_cast<ptrdiff_t>(victim));
    (watcher->tokens > 0 ? decoding : victim < 6 ? prefilling : queued) += 1;
    (*engine)->Cancel(id);
    const int64_t asked_at = steps;
    while (!watcher->is_over) std::this_thread::yield();
    if (watcher->reason == FinishReason::kCancelled)
      latencies.push_back(watcher->finished_at - asked_at);
  }
  EXPECT_GT(queued, kRequests / 10);
  EXPECT_GT(decoding, kRequests / 10);
  ASSERT_GT(latencies.size(), static_cast<size_t>(kRequests) / 2);
  // The step that runs then, and one if the engine was just about to begin it.
  EXPECT_LE(*std::ranges::max_element(latencies), 1);
  for (const auto& [id, watcher] : open) (*engine)->Cancel(id);
  ASSERT_TRUE((*engine)->Drain(std::chrono::seconds(30)).ok());
  EXPECT_EQ((*engine)->stats().kv_pages_used, 0);
}

}  // namespace
}  // namespace tessera::engine
