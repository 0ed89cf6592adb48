// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "support/fake_session.h"

namespace tessera::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::FakeSession;
using testing::FakeSessionOptions;

/// Keeps the engine thread inside a step until opened.
class Gate {
 public:
  void Pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
    --waiting_;
  }
  void AwaitWaiter() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ > 0; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

struct Waiter : Sink {
  void OnToken(TokenOutput token) override {
    const std::lock_guard lock(mutex);
    tokens.push_back(token.id);
    changed.notify_all();
  }
  void OnFinish(Finish f) override {
    const std::lock_guard lock(mutex);
    finish = std::move(f);
    changed.notify_all();
  }
  Finish Wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return finish.has_value(); });
    return *finish;
  }
  void AwaitToken() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return !tokens.empty(); });
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<TokenId> tokens;
  std::optional<Finish> finish;
};

Request MakeRequest(const std::shared_ptr<Waiter>& waiter, int64_t max_tokens) {
  Request request;
  request.prompt = {1, 2, 3};
  request.stop.max_tokens = max_tokens;
  request.arrival = Clock::Real().Now();
  request.sink = waiter;
  return request;
}

std::unique_ptr<Engine> StartEngine(FakeSessionOptions session, EngineOptions options = {}) {
  auto engine =
      Engine::Start(std::make_unique<FakeSession>(std::move(session)), options, Clock::Real());
  EXPECT_TRUE(engine.has_value()) << engine.error().ToString();
  return std::move(*engine);
}

/// A gate that holds every step after the proving one.
FakeSessionOptions Gated(const std::shared_ptr<Gate>& gate) {
  FakeSessionOptions options;
  options.on_step = [gate](int64_t step) {
    if (step > 0) gate->Pass();
    return Status();
  };
  return options;
}

TEST(Engine, AnswersRequestsFromManyThreads) {
  const auto engine = StartEngine({});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&engine] {
      for (int k = 0; k < 20; ++k) {
        const auto waiter = std::make_shared<Waiter>();
        ASSERT_TRUE(engine->Submit(MakeRequest(waiter, 5)).has_value());
        EXPECT_EQ(waiter->Wait().generated_tokens, 5);
      }
    });
  for (std::thread& thread : threads) thread.join();
  const Stats stats = engine->stats();
  EXPECT_EQ(stats.finished_length, 80);
  EXPECT_EQ(stats.generation_tokens, 400);
  EXPECT_EQ(stats.running, 0);
}

TEST(Engine, WhoSeesTheFinishSeesItCounted) {
  const auto engine = StartEngine({});
  for (int64_t k = 1; k <= 50; ++k) {
    const auto waiter = std::make_shared<Waiter>();
    ASSERT_TRUE(engine->Submit(MakeRequest(waiter, 2)).has_value());
    waiter->Wait();
    EXPECT_EQ(engine->stats().finished_length, k);
    EXPECT_EQ(engine->stats().running, 0);
  }
}

TEST(Engine, AProbeStepsTheModelAndCountsAsNoRequest) {
  const auto engine = StartEngine({});
  EXPECT_FALSE(engine->stats().last_step.has_value());
  const TimePoint before = Clock::Real().Now();
  const auto waiter = std::make_shared<Waiter>();
  Request request = MakeRequest(waiter, 1);
  request.is_probe = true;
  ASSERT_TRUE(engine->Submit(std::move(request)).has_value());
  EXPECT_EQ(waiter->Wait().generated_tokens, 1);
  const Stats stats = engine->stats();
  ASSERT_TRUE(stats.last_step.has_value());
  EXPECT_GE(*stats.last_step, before);
  EXPECT_EQ(stats.steps, 1);
  EXPECT_EQ(stats.prompt_tokens + stats.generation_tokens + stats.finished_length, 0);
  EXPECT_EQ(stats.time_to_first_token.count() + stats.e2e_latency.count(), 0);
}

TEST(Engine, AFailedStepIsNoSignOfLife) {
  FakeSessionOptions options;
  options.on_step = [](int64_t step) { return step > 0 ? Internal("no luck") : Status(); };
  const auto engine = StartEngine(std::move(options));
  const auto waiter = std::make_shared<Waiter>();
  ASSERT_TRUE(engine->Submit(MakeRequest(waiter, 1)).has_value());
  EXPECT_EQ(waiter->Wait().status.code(), Code::kInternal);
  EXPECT_FALSE(engine->stats().last_step.has_value());
}

TEST(Engine, AModelThatCannotStepDoesNotStart) {
  FakeSessionOptions options;
  options.on_step = [](int64_t) { return Internal("no device"); };
  const auto engine = Engine::Start(std::make_unique<FakeSession>(options), {}, Clock::Real());
  ASSERT_FALSE(engine.has_value());
  EXPECT_NE(engine.error().ToString().find("no device"), std::string::npos);
}

TEST(Engine, StartsWithoutAStepWhenTheFirstRequestIsTheProof) {
  const auto steps = std::make_shared<std::atomic<int>>(0);
  FakeSessionOptions options;
  options.on_step = [steps](int64_t) {
    ++*steps;
    return Internal("no device");
  };
  const auto engine = Engine::Start(std::make_unique<FakeSession>(options),
                                    {.prove_session = false}, Clock::Real());
  ASSERT_TRUE(engine.has_value()) << engine.error().ToString();
  EXPECT_EQ(*steps, 0);
  const auto waiter = std::make_shared<Waiter>();
  ASSERT_TRUE((*engine)->Submit(MakeRequest(waiter, 2)).has_value());
  EXPECT_NE(waiter->Wait().status.ToString().find("no device"), std::string::npos);
}

TEST(Engine, TheQueueIsBoundedAndSaysSo) {
  const auto gate = std::make_shared<Gate>();
  const auto engine = StartEngine(Gated(gate), {.max_running = 1, .queue_length = 2});
  const auto running = std::make_shared<Waiter>();
  ASSERT_TRUE(engine->Submit(MakeRequest(running, 3)).has_value());
  gate->AwaitWaiter();
  const auto second = std::make_shared<Waiter>();
  const auto third = std::make_shared<Waiter>();
  // The step under way was planned before its statistics: the running one may still count as
  // waiting, so fill up until refused.
  int accepted = 0;
  Result<RequestId> last = engine->Submit(MakeRequest(second, 3));
  while (last.has_value()) {
    ++accepted;
    ASSERT_LE(accepted, 2);
    last = engine->Submit(MakeRequest(third, 3));
  }
  EXPECT_EQ(last.error().code(), Code::kResourceExhausted);
  EXPECT_NE(last.error().message().find("2 is the limit"), std::string::npos);
  EXPECT_EQ(engine->stats().rejected_queue_full, 1);
  gate->Open();
  EXPECT_EQ(running->Wait().reason, FinishReason::kLength);
}

/// A clock that the test turns, read by the engine's thread.
class SharedClock : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(Duration(ns.load())); }
  int64_t UnixSeconds() const override { return 1'700'000'000; }
  std::atomic<int64_t> ns{1'000'000'000};
};

TEST(Engine, WhoIsRefusedHearsWhenToComeBack) {
  SharedClock clock;
  const auto gate = std::make_shared<Gate>();
  FakeSessionOptions options;
  options.on_step = [&clock, gate](int64_t step) {
    clock.ns += std::chrono::nanoseconds(std::chrono::seconds(3)).count();
    if (step > 20) gate->Pass();
    return Status();
  };
  auto started = Engine::Start(std::make_unique<FakeSession>(std::move(options)),
                               {.max_running = 1, .queue_length = 6}, clock);
  ASSERT_TRUE(started.has_value());
  const std::unique_ptr<Engine>& engine = *started;
  EXPECT_EQ(engine->retry_after(), std::chrono::seconds(1)) << "nothing is known";
  for (int i = 0; i < 20; ++i) {  // One step each, of three seconds.
    const auto waiter = std::make_shared<Waiter>();
    ASSERT_TRUE(engine->Submit(MakeRequest(waiter, 1)).has_value());
    waiter->Wait();
  }
  const auto running = std::make_shared<Waiter>();
  ASSERT_TRUE(engine->Submit(MakeRequest(running, 1)).has_value());
  gate->AwaitWaiter();
  const auto submit = [&](int count) {
    std::vector<Request> requests;
    while (count-- > 0) requests.push_back(MakeRequest(std::make_shared<Waiter>(), 1));
    return engine->SubmitAll(std::move(requests));
  };
  ASSERT_TRUE(submit(4).has_value());
  const auto refused = submit(6);
  ASSERT_FALSE(refused.has_value());
  // Four or five too many (the running one may still count as waiting), three seconds each.
  const int64_t wait_s = engine->retry_after().count();
  EXPECT_TRUE(wait_s >= 12 && wait_s <= 16) << wait_s;
  EXPECT_NE(refused.error().message().find(std::to_string(wait_s) + " s"), std::string::npos);
  gate->Open();
  running->Wait();
}

TEST(Engine, TheWatchdogNamesTheStageThatIsStuck) {
  const auto gate = std::make_shared<Gate>();
  std::promise<Stage> reported;
  std::atomic<bool> is_first{true};
  auto started = Engine::Start(std::make_unique<FakeSession>(Gated(gate)),
                               {.stuck_after = std::chrono::milliseconds(20),
                                .on_stuck =
                                    [&](const Watchdog::Stuck& stuck) {
                                      if (is_first.exchange(false)) reported.set_value(stuck.stage);
                                    }},
                               Clock::Real());
  ASSERT_TRUE(started.has_value());
  const auto waiter = std::make_shared<Waiter>();
  ASSERT_TRUE((*started)->Submit(MakeRequest(waiter, 1)).has_value());
  EXPECT_EQ(reported.get_future().get(), Stage::kModel);
  EXPECT_EQ((*started)->stage().stage, Stage::kModel);
  gate->Open();
  waiter->Wait();
}

TEST(Engine, TheDefaultQueueTakesAsManyAsItsLimitSays) {
  for (const int64_t count :
       {kQueueLengthDefault - 1, kQueueLengthDefault, kQueueLengthDefault + 1}) {
    const auto engine = StartEngine({});
    const auto waiter = std::make_shared<Waiter>();
    std::vector<Request> requests;
    for (int64_t i = 0; i < count; ++i) requests.push_back(MakeRequest(waiter, 1));
    const auto ids = engine->SubmitAll(std::move(requests));
    EXPECT_EQ(ids.has_value(), count <= kQueueLengthDefault) << count;
    if (!ids.has_value()) {  // It would never fit: no reason to come again.
      EXPECT_EQ(ids.error().code(), Code::kInvalidArgument);
    }
  }
}

TEST(Engine, SubmitAllTakesAllOrNone) {
  const auto engine = StartEngine({}, {.max_running = 1, .queue_length = 2});
  const auto waiter = std::make_shared<Waiter>();
  std::vector<Request> three;
  for (int i = 0; i < 3; ++i) three.push_back(MakeRequest(waiter, 3));
  EXPECT_EQ(engine->SubmitAll(std::move(three)).error().code(), Code::kInvalidArgument);
  std::vector<Request> bad;
  bad.push_back(MakeRequest(waiter, 3));
  bad.push_back(MakeRequest(waiter, 0));
  EXPECT_EQ(engine->SubmitAll(std::move(bad)).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(engine->stats().waiting, 0);
  EXPECT_TRUE(engine->Drain(seconds(0)).ok()) << "nothing was taken";
}

TEST(Engine, CancelEndsARunningRequest) {
  FakeSessionOptions options;
  options.on_step = [](int64_t) {
    std::this_thread::yield();
    return Status();
  };
  const auto engine = StartEngine(options);
  const auto waiter = std::make_shared<Waiter>();
  const RequestId id = engine->Submit(MakeRequest(waiter, 250)).value();
  waiter->AwaitToken();
  engine->Cancel(id);
  const Finish finish = waiter->Wait();
  EXPECT_TRUE(finish.reason == FinishReason::kCancelled || finish.generated_tokens == 250);
  EXPECT_EQ(engine->stats().kv_pages_used, 0);
  engine->Cancel(id);
  engine->Cancel(12345);
}

TEST(Engine, DrainRefusesNewAndWaitsForOld) {
  const auto gate = std::make_shared<Gate>();
  const auto engine = StartEngine(Gated(gate));
  const auto waiter = std::make_shared<Waiter>();
  ASSERT_TRUE(engine->Submit(MakeRequest(waiter, 5)).has_value());
  gate->AwaitWaiter();
  std::thread drainer([&] { EXPECT_TRUE(engine->Drain(seconds(60)).ok()); });
  while (!engine->draining()) std::this_thread::yield();
  EXPECT_EQ(engine->Submit(MakeRequest(waiter, 5)).error().code(), Code::kUnavailable);
  gate->Open();
  drainer.join();
  EXPECT_EQ(waiter->Wait().generated_tokens, 5);
}

TEST(Engine, DrainCutsWhatIsNotDoneInTime) {
  const auto gate = std::make_shared<Gate>();
  const auto engine = StartEngine(Gated(gate));
  const auto waiter = std::make_shared<Waiter>();
  ASSERT_TRUE(engine->Submit(MakeRequest(waiter, 250)).has_value());
  gate->AwaitWaiter();
  Status status;
  std::thread drainer([&] { status = engine->Drain(milliseconds(1)); });
  while (!engine->draining()) std::this_thread::yield();
  std::this_thread::sleep_for(milliseconds(20));  // Past the patience; the gate still holds.
  gate->Open();
  drainer.join();
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(waiter->Wait().reason, FinishReason::kCancelled);
}

TEST(Engine, DestructionFinishesEverySink) {
  const auto gate = std::make_shared<Gate>();
  std::vector<std::shared_ptr<Waiter>> waiters;
  {
    const auto engine = StartEngine(Gated(gate), {.max_running = 2, .queue_length = 8});
    for (int i = 0; i < 5; ++i) {
      waiters.push_back(std::make_shared<Waiter>());
      ASSERT_TRUE(engine->Submit(MakeRequest(waiters.back(), 200)).has_value());
    }
    gate->AwaitWaiter();
    gate->Open();
  }
  for (const auto& waiter : waiters) EXPECT_TRUE(waiter->finish.has_value());
}

}  // namespace
}  // namespace tessera::engine
