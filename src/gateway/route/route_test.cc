// SPDX-License-Identifier: Apache-2.0
#include "gateway/route/route.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "gateway/limits.h"

namespace tessera::gateway {
namespace {

using std::chrono::seconds;

class RouteTest : public ::testing::Test {
 protected:
  static std::shared_ptr<Route> Make(Route::Limits limits = {}, int* demands = nullptr) {
    return std::make_shared<Route>(limits, [demands] {
      if (demands != nullptr) ++*demands;
    });
  }
  /// What a call got so far; kept leases stay open.
  struct Call {
    uint64_t number = 0;
    std::optional<Result<Route::Lease>> got;
    std::string worker() const { return got && got->has_value() ? (*got)->worker().id : ""; }
    Code code() const { return got && !got->has_value() ? got->error().code() : Code::kOk; }
  };
  static std::shared_ptr<Call> Acquire(const std::shared_ptr<Route>& route,
                                       Route::Request request = {}) {
    auto call = std::make_shared<Call>();
    call->number = route->Acquire(std::move(request), [call](Result<Route::Lease> lease) {
      ASSERT_FALSE(call->got.has_value()) << "told twice";
      call->got.emplace(std::move(lease));
    });
    return call;
  }
  static RouteWorker Worker(std::string id) { return {.id = std::move(id), .port = 1, .key = ""}; }
};

TEST_F(RouteTest, TheLeastBusyIsTaken) {
  const auto route = Make();
  route->SetWorkers({Worker("a"), Worker("b")});
  const auto first = Acquire(route), second = Acquire(route);
  EXPECT_NE(first->worker(), second->worker());
  EXPECT_EQ(route->load().open, 2);
  first->got.reset();
  EXPECT_EQ(route->load().open, 1);
  EXPECT_NE(Acquire(route)->worker(), second->worker());
}

TEST_F(RouteTest, CallsWaitForTheFirstWorkerInOrder) {
  int demands = 0;
  const auto route = Make({.open_per_worker_max = 1}, &demands);
  const auto first = Acquire(route), second = Acquire(route);
  EXPECT_NE(first->number, 0u);
  EXPECT_EQ(demands, 2);
  EXPECT_EQ(route->load().waiting, 2);
  route->SetWorkers({Worker("a")});
  EXPECT_EQ(first->worker(), "a");
  EXPECT_FALSE(second->got.has_value());
  first->got.reset();
  EXPECT_EQ(second->worker(), "a");
}

TEST_F(RouteTest, WaitingIsBoundedInNumberAndTime) {
  const auto route = Make({.waiting_max = 2});
  const auto first = Acquire(route, {.deadline = TimePoint(seconds(5))});
  const auto second = Acquire(route, {.deadline = TimePoint(seconds(9))});
  EXPECT_EQ(Acquire(route)->code(), Code::kResourceExhausted);
  EXPECT_EQ(route->ExpireWaiting(TimePoint(seconds(4))), TimePoint(seconds(5)));
  EXPECT_EQ(route->ExpireWaiting(TimePoint(seconds(5))), TimePoint(seconds(9)));
  EXPECT_EQ(first->code(), Code::kDeadlineExceeded);
  EXPECT_FALSE(second->got.has_value());
  EXPECT_TRUE(route->Withdraw(second->number));
  EXPECT_FALSE(route->Withdraw(second->number));
  route->SetWorkers({Worker("a")});
  EXPECT_FALSE(second->got.has_value()) << "it was withdrawn";
}

TEST_F(RouteTest, AWorkerThatFailedACallIsAvoidedByIt) {
  const auto route = Make();
  route->SetWorkers({Worker("a")});
  const auto call = Acquire(route, {.avoid = {"a"}});
  EXPECT_FALSE(call->got.has_value());
  EXPECT_EQ(Acquire(route)->worker(), "") << "first come, first served";
  route->SetWorkers({Worker("a"), Worker("b")});
  EXPECT_EQ(call->worker(), "b");
}

TEST_F(RouteTest, ClosedMeansClosed) {
  const auto route = Make();
  const auto waiting = Acquire(route);
  route->Close(Unavailable("deleted"));
  EXPECT_EQ(waiting->code(), Code::kUnavailable);
  EXPECT_EQ(Acquire(route)->code(), Code::kUnavailable);
}

TEST_F(RouteTest, PromptsThatBeginAlikeGoToOneWorker) {
  const auto route = Make();
  route->SetWorkers({Worker("a"), Worker("b"), Worker("c")});
  const std::string shared(5000, 's');
  const auto first = Acquire(route, {.prefix = PrefixHashes(shared + "one")});
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(Acquire(route, {.prefix = PrefixHashes(shared + std::to_string(i))})->worker(),
              first->worker());
  // But not when that worker is much busier.
  std::vector<std::shared_ptr<Call>> open;
  for (int64_t i = 0; i <= kAffinitySlack + 1; ++i)
    open.push_back(Acquire(route, {.prefix = PrefixHashes(shared)}));
  EXPECT_NE(open.back()->worker(), first->worker());
}

TEST_F(RouteTest, CountsSurviveAWorkersLeaving) {
  const auto route = Make();
  route->SetWorkers({Worker("a")});
  const auto call = Acquire(route);
  route->SetWorkers({});
  EXPECT_EQ(route->OpenCalls("a"), 1) << "it drains";
  route->SetWorkers({Worker("a")});
  EXPECT_EQ(route->OpenCalls("a"), 1);
  route->SetWorkers({});
  call->got.reset();
  EXPECT_EQ(route->OpenCalls("a"), 0);
  EXPECT_EQ(route->load().open, 0);
}

// As calls do whose callers are gone. One would be served by the other, ever deeper in the stack.
TEST_F(RouteTest, CallsThatGiveTheirWorkerBackAtOnceAreServedInALoop) {
  constexpr int kCalls = 200'000;
  const auto route = Make({.waiting_max = kCalls, .open_per_worker_max = 1});
  route->SetWorkers({Worker("a")});
  auto first = Acquire(route);
  int served = 0;
  for (int i = 0; i < kCalls; ++i)
    route->Acquire({}, [&](const Result<Route::Lease>& lease) { served += lease.has_value(); });
  EXPECT_EQ(served, 0);
  first->got.reset();
  EXPECT_EQ(served, kCalls);
  EXPECT_EQ(route->load().open, 0);
}

TEST_F(RouteTest, ManyThreadsLoseNoCall) {
  const auto route = Make({.waiting_max = 1 << 20, .open_per_worker_max = 2});
  std::atomic<int> served{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i)
        route->Acquire({.prefix = PrefixHashes(std::string(300, static_cast<char>('a' + i % 7)))},
                       [&](Result<Route::Lease> lease) {
                         ASSERT_TRUE(lease.has_value());
                         ++served;
                       });
    });
  for (int i = 0; i < 50; ++i) {
    route->SetWorkers({Worker("a"), Worker("b")});
    route->SetWorkers({Worker("b")});
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served, 8000);
  EXPECT_EQ(route->load().open, 0);
}

TEST(PrefixHashes, SharedBeginningsShareHashes) {
  const std::string a = std::string(600, 'x') + "a", b = std::string(600, 'x') + "b";
  const auto of_a = PrefixHashes(a), of_b = PrefixHashes(b);
  ASSERT_EQ(of_a.size(), 3u);
  EXPECT_EQ(of_a[0], of_b[0]);
  EXPECT_EQ(of_a[1], of_b[1]);
  EXPECT_NE(of_a[2], of_b[2]);
  EXPECT_TRUE(PrefixHashes("short").empty());
}

}  // namespace
}  // namespace tessera::gateway
