// SPDX-License-Identifier: Apache-2.0
//
// Constrained sequences in the engine: masks that come in time, late ones, ends, failures.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "support/core_harness.h"

namespace tessera::engine {
namespace {

using testing::CoreHarness;
using testing::Prompt;

constexpr TokenId kEnd = 257;

/// The output is one of `texts`, byte by byte. Opens its gate before it computes a mask.
class OneOf : public TokenConstraint {
 public:
  explicit OneOf(std::vector<std::string> texts) : texts_(std::move(texts)) {}

  Result<Next> ComputeMask(std::span<uint32_t> mask) override {
    {
      std::unique_lock lock(mutex_);
      ++asked_;
      gate_.wait(lock, [this] { return is_open_; });
    }
    if (fails_at_ == static_cast<int64_t>(said_.size()))
      return Fail(FailedPrecondition("too much work"));
    std::ranges::fill(mask, 0);
    Next next;
    for (const std::string& text : texts_) {
      if (!text.starts_with(said_)) continue;
      if (text == said_) {
        next.may_end = true;
        continue;
      }
      const auto id = static_cast<unsigned char>(text[said_.size()]);
      mask[id / 32] |= 1u << (id % 32);
      next.may_go_on = true;
    }
    return next;
  }
  Status Accept(TokenId id) override {
    said_ += static_cast<char>(id);
    return {};
  }

  void FailAt(int64_t length) { fails_at_ = length; }
  void Shut() {
    const std::lock_guard lock(mutex_);
    is_open_ = false;
  }
  void Open() {
    {
      const std::lock_guard lock(mutex_);
      is_open_ = true;
    }
    gate_.notify_all();
  }
  int asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  const std::vector<std::string> texts_;
  std::string said_;
  int64_t fails_at_ = -1;
  mutable std::mutex mutex_;
  std::condition_variable gate_;
  bool is_open_ = true;
  int asked_ = 0;
};

Request Ask(std::shared_ptr<TokenConstraint> constraint, int64_t max_tokens = 50) {
  Request request;
  request.prompt = Prompt(7);
  request.stop.max_tokens = max_tokens;
  request.stop.eos_ids = {kEnd};
  request.sampling.temperature = 0;
  request.constraint = std::move(constraint);
  return request;
}

std::string Text(const testing::Recorder& recorder) {
  std::string text;
  for (const TokenOutput& token : recorder.outputs)
    if (!token.is_end) text += static_cast<char>(token.id);
  return text;
}

TEST(EngineMasks, TheOutputKeepsToItsFormAndEndsWithIt) {
  CoreHarness harness;
  const auto answer = harness.Add(Ask(std::make_shared<OneOf>(std::vector<std::string>{"hello"})));
  harness.Run();
  EXPECT_EQ(Text(*answer), "hello");
  EXPECT_EQ(answer->finish->reason, FinishReason::kStop);
  EXPECT_EQ(answer->finish->generated_tokens, 5);
}

TEST(EngineMasks, AFormThatIsCompleteAtOnceEndsBehindThePrompt) {
  for (const size_t length : {5, 64, 65, 200}) {  // Steps of 64 rows.
    CoreHarness harness;
    Request request = Ask(std::make_shared<OneOf>(std::vector<std::string>{""}));
    request.prompt = Prompt(length);
    request.prompt_logprobs = 0;
    const auto answer = harness.Add(std::move(request));
    harness.Run();
    ASSERT_TRUE(answer->prompt.has_value());
    EXPECT_EQ(answer->prompt->size(), length - 1);
    EXPECT_EQ(answer->finish->reason, FinishReason::kStop);
    EXPECT_EQ(answer->finish->generated_tokens, 0);
  }
}

TEST(EngineMasks, AMaskThatNobodyWantsAnyMoreIsNotComputed) {
  auto shut = std::make_shared<OneOf>(std::vector<std::string>{"hello"});
  auto other = std::make_shared<OneOf>(std::vector<std::string>{"hello"});
  auto last = std::make_shared<OneOf>(std::vector<std::string>{"hello"});
  shut->Shut();
  MaskWorker worker(300, 1, {});
  const auto busy = worker.Begin(shut);
  while (shut->asked() == 0) std::this_thread::yield();
  worker.Discard(worker.Begin(other));
  const auto wanted = worker.Begin(last);
  shut->Open();
  worker.Wait(*wanted, std::chrono::steady_clock::now() + std::chrono::seconds(60));
  EXPECT_TRUE(wanted->is_ready());
  EXPECT_EQ(last->asked(), 1);
  EXPECT_EQ(other->asked(), 0);
}

TEST(EngineMasks, WhereItMayEndTheModelDecides) {
  for (const bool ends : {true, false}) {
    testing::FakeSessionOptions options;
    options.next = [ends](std::span<const int32_t> context) {
      return context.back() == 'a' ? (ends ? kEnd : TokenId{'b'}) : TokenId{'x'};
    };
    CoreHarness harness(options);
    const auto answer =
        harness.Add(Ask(std::make_shared<OneOf>(std::vector<std::string>{"a", "abc"})));
    harness.Run();
    EXPECT_EQ(Text(*answer), ends ? "a" : "abc");
    EXPECT_EQ(answer->finish->reason, FinishReason::kStop);
  }
}

TEST(EngineMasks, NoEndBeforeMinTokensOrWithIgnoreEos) {
  testing::FakeSessionOptions options;
  options.next = [](std::span<const int32_t>) { return kEnd; };
  CoreHarness harness(options);
  Request patient = Ask(std::make_shared<OneOf>(std::vector<std::string>{"a", "ab"}));
  patient.stop.min_tokens = 2;
  Request endless = Ask(std::make_shared<OneOf>(std::vector<std::string>{"a", "ab"}));
  endless.stop.eos_ids.clear();
  const auto first = harness.Add(std::move(patient));
  const auto second = harness.Add(std::move(endless));
  harness.Run();
  EXPECT_EQ(Text(*first), "ab");
  EXPECT_EQ(Text(*second), "ab");
  EXPECT_EQ(second->finish->reason, FinishReason::kStop);
}

TEST(EngineMasks, MaxTokensCutsWithLengthUnlessTheFormIsComplete) {
  CoreHarness harness;
  const auto cut = harness.Add(Ask(std::make_shared<OneOf>(std::vector<std::string>{"hello"}), 4));
  const auto whole =
      harness.Add(Ask(std::make_shared<OneOf>(std::vector<std::string>{"hello"}), 5));
  harness.Run();
  EXPECT_EQ(Text(*cut), "hell");
  EXPECT_EQ(cut->finish->reason, FinishReason::kLength);
  EXPECT_EQ(Text(*whole), "hello");
  EXPECT_EQ(whole->finish->reason, FinishReason::kStop);
}

TEST(EngineMasks, AFailingFormFailsItsRequestAlone) {
  CoreHarness harness;
  auto broken = std::make_shared<OneOf>(std::vector<std::string>{"hello"});
  broken->FailAt(2);
  const auto bad = harness.Add(Ask(broken));
  const auto good = harness.Add(Ask(std::make_shared<OneOf>(std::vector<std::string>{"hello"})));
  harness.Run();
  EXPECT_EQ(bad->finish->reason, FinishReason::kError);
  EXPECT_EQ(bad->finish->status.code(), Code::kFailedPrecondition);
  EXPECT_EQ(Text(*good), "hello");
}

TEST(EngineMasks, ALateMaskHoldsItsSequenceAndNobodyElse) {
  CoreHarness harness({}, {.max_running = 4, .mask_patience = std::chrono::milliseconds(0)});
  auto slow = std::make_shared<OneOf>(std::vector<std::string>{"hello"});
  slow->Shut();
  const auto late = harness.Add(Ask(slow));
  const auto other = harness.Add(Prompt(9, 1), 20);
  for (int i = 0; i < 15; ++i) harness.Step();
  EXPECT_TRUE(late->tokens.empty());
  EXPECT_EQ(other->tokens.size(), 15u);
  EXPECT_EQ(harness.core.stats().late_masks, 1) << "its row is computed once in vain";
  slow->Open();
  harness.Run();
  EXPECT_EQ(Text(*late), "hello");
  EXPECT_EQ(other->tokens, testing::Expected(harness.session, Prompt(9, 1), 20));
}

TEST(EngineMasks, ACoreThatOnlyWaitsForMasksIsStalledUntilTheyComeOrAnotherRequestDoes) {
  CoreHarness harness({}, {.max_running = 4, .mask_patience = std::chrono::milliseconds(0)});
  auto slow = std::make_shared<OneOf>(std::vector<std::string>{"a"});
  slow->Shut();
  const auto late = harness.Add(Ask(slow));
  EXPECT_FALSE(harness.core.is_stalled());
  harness.Step();
  harness.Step();
  EXPECT_TRUE(harness.core.is_stalled());
  const auto other = harness.Add(Prompt(9, 1), 2);
  EXPECT_FALSE(harness.core.is_stalled());
  harness.Step();
  harness.Step();
  EXPECT_EQ(other->tokens.size(), 2u);
  harness.Step();
  EXPECT_TRUE(harness.core.is_stalled());
  harness.core.End(1, FinishReason::kCancelled, Cancelled("gone"));
  EXPECT_FALSE(harness.core.is_stalled());
  EXPECT_FALSE(harness.core.has_work());
  slow->Open();
}

TEST(EngineMasks, PreemptionLeavesTheFormAsItIs) {
  testing::FakeSessionOptions options;
  options.shape.page_count = 6;
  CoreHarness harness(options);
  std::string alphabet;
  for (char c = 'A'; c <= 'z'; ++c) alphabet += c;
  std::vector<std::shared_ptr<testing::Recorder>> answers;
  for (int i = 0; i < 3; ++i) {
    Request request = Ask(std::make_shared<OneOf>(std::vector<std::string>{alphabet}), 80);
    request.prompt = Prompt(7, i);  // Others share nothing with it.
    answers.push_back(harness.Add(std::move(request)));
  }
  harness.Run();
  EXPECT_GT(harness.core.stats().preemptions, 0);
  for (const auto& answer : answers) {
    EXPECT_EQ(Text(*answer), alphabet);
    EXPECT_EQ(answer->finish->reason, FinishReason::kStop);
  }
}

struct Waiter : Sink {
  void OnToken(TokenOutput) override {}
  void OnFinish(Finish f) override {
    {
      const std::lock_guard lock(mutex);
      finish = std::move(f);
    }
    done.notify_all();
  }
  FinishReason Wait() {
    std::unique_lock lock(mutex);
    done.wait(lock, [this] { return finish.has_value(); });
    return finish->reason;
  }
  std::mutex mutex;
  std::condition_variable done;
  std::optional<Finish> finish;
};

TEST(EngineMasks, TheEngineSleepsWhileItWaitsForAMaskAndWakesWithIt) {
  testing::FakeSessionOptions options;
  std::atomic<int64_t> steps = 0;
  options.on_step = [&steps](int64_t) {
    ++steps;
    return Status();
  };
  auto engine =
      Engine::Start(std::make_unique<testing::FakeSession>(options), {}, Clock::Real()).value();
  for (int round = 0; round < 20; ++round) {
    auto slow = std::make_shared<OneOf>(std::vector<std::string>{"ab"});
    slow->Shut();
    Request request = Ask(slow);
    const auto waiter = std::make_shared<Waiter>();
    request.sink = waiter;
    const int64_t before = steps;
    ASSERT_TRUE(engine->Submit(std::move(request)).has_value());
    while (slow->asked() == 0 || engine->stats().late_masks <= round) std::this_thread::yield();
    EXPECT_LE(steps - before, 1);
    slow->Open();
    EXPECT_EQ(waiter->Wait(), FinishReason::kStop);
  }
}

TEST(EngineMasks, BeamSearchWithAFormIsRefused) {
  Request request = Ask(std::make_shared<OneOf>(std::vector<std::string>{"a"}));
  request.sink = std::make_shared<testing::Recorder>();
  request.beams.emplace().width = 2;
  EXPECT_EQ(CheckRequest(request, testing::FakeSessionOptions().shape).code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace tessera::engine
