// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tessera {
namespace {

TEST(ThreadPool, RunsOnEveryWorkerOnceAndReturnsWhenAllAreDone) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads, {});
    std::vector<int> hits(static_cast<size_t>(threads), 0);
    for (int run = 0; run < 200; ++run)
      pool.Run([&](int worker) { ++hits[static_cast<size_t>(worker)]; });
    EXPECT_EQ(hits, std::vector<int>(static_cast<size_t>(threads), 200));
  }
}

TEST(ThreadPool, BarrierMakesEarlierWritesVisible) {
  constexpr int kThreads = 3, kPhases = 500;
  ThreadPool pool(kThreads, {});
  std::vector<int> cells(kThreads, 0);
  std::vector<int> wrong(kThreads, 0);
  pool.Run([&](int worker) {
    for (int phase = 1; phase <= kPhases; ++phase) {
      cells[static_cast<size_t>(worker)] = phase;
      pool.Barrier();
      if (std::accumulate(cells.begin(), cells.end(), 0) != phase * kThreads)
        ++wrong[static_cast<size_t>(worker)];
      pool.Barrier();
    }
  });
  EXPECT_EQ(wrong, std::vector<int>(kThreads, 0));
  EXPECT_EQ(pool.barriers(), 2u * kPhases);
}

TEST(ThreadPool, WorkersThatFellAsleepWakeUpAgain) {
  ThreadPool pool(2, {0});
  int sum = 0;
  for (int run = 0; run < 3; ++run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // Longer than workers spin.
    pool.Run([&](int worker) { sum += worker == 1 ? 1 : 0; });
  }
  EXPECT_EQ(sum, 3);
}

}  // namespace
}  // namespace tessera
