// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <numeric>

namespace tessera {
namespace {

TEST(ThreadPool, RunsOnEveryWorkerOnceAndReturnsWhenAllAreDone) {
  for (int threads : {1, 2, 5}) {
    const auto pool = *ThreadPool::Make(threads, {});
    std::vector<int> hits(static_cast<size_t>(threads), 0);
    for (int run = 0; run < 200; ++run)
      pool->Run([&](int worker) { ++hits[static_cast<size_t>(worker)]; });
    EXPECT_EQ(hits, std::vector<int>(static_cast<size_t>(threads), 200));
  }
}

TEST(ThreadPool, BarrierMakesEarlierWritesVisible) {
  constexpr int kThreads = 3, kPhases = 500;
  const auto pool = *ThreadPool::Make(kThreads, {});
  std::vector<int> cells(kThreads, 0);
  std::vector<int> wrong(kThreads, 0);
  pool->Run([&](int worker) {
    for (int phase = 1; phase <= kPhases; ++phase) {
      cells[static_cast<size_t>(worker)] = phase;
      pool->Barrier(worker);
      if (std::accumulate(cells.begin(), cells.end(), 0) != phase * kThreads)
        ++wrong[static_cast<size_t>(worker)];
      pool->Barrier(worker);
    }
  });
  EXPECT_EQ(wrong, std::vector<int>(kThreads, 0));
  EXPECT_EQ(pool->barriers(), 2u * kPhases);
}

TEST(ThreadPool, AMachineWithoutThreadsIsAnError) {
  pthread_attr_t before, hungry;
  ASSERT_EQ(::pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(::pthread_attr_init(&hungry), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&hungry, size_t{1} << 50), 0);  // No stack can be mapped.
  ASSERT_EQ(::pthread_setattr_default_np(&hungry), 0);
  const auto pool = ThreadPool::Make(3, {});
  ASSERT_EQ(::pthread_setattr_default_np(&before), 0);
  ASSERT_FALSE(pool.has_value());
  EXPECT_EQ(pool.error().code(), Code::kResourceExhausted);
  EXPECT_TRUE(ThreadPool::Make(3, {}).has_value());
}

TEST(ThreadPool, WorkersThatFellAsleepWakeUpAgain) {
  const auto pool = *ThreadPool::Make(2, {0});
  int sum = 0;
  for (int run = 0; run < 3; ++run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // Longer than workers spin.
    pool->Run([&](int worker) { sum += worker == 1 ? 1 : 0; });
  }
  EXPECT_EQ(sum, 3);
}

}  // namespace
}  // namespace tessera
