// SPDX-License-Identifier: Apache-2.0
//
// ThreadPool: the pinned workers of a step. Run(f) executes f(worker) on every worker at once, the
// caller being worker 0, and returns when all are done. Inside f, Barrier() separates phases: it
// spins (a futex costs 150 times more), so f must not block. Between steps workers spin for a
// short while and then sleep, so an idle process uses no CPU.
//
// Not for general tasks. One owner thread calls Run; Barrier is called by every worker the same
// number of times. Each worker publishes its arrival in a cache line of its own and reads those of
// the others: one transfer of a line between the last arrival and the end of the wait, where a
// shared counter takes three.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/status.h"

namespace tessera {

class ThreadPool {
 public:
  /// Starts `threads` - 1 workers, at least 0. `cpus` names the CPU to pin each worker to (index =
  /// worker); empty or too short = not pinned. The caller's thread is pinned by PinCaller() only.
  /// kResourceExhausted when the system gives no more threads; those started are ended. `crowded`:
  /// there are fewer CPUs than workers, so one that waits gives its CPU away at once.
  static Result<std::unique_ptr<ThreadPool>> Make(int threads, std::vector<int> cpus,
                                                  bool crowded = false);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }
  /// Pins the calling thread to worker 0's CPU, if one was named.
  void PinCaller() const;

  void Run(const std::function<void(int worker)>& function);

  /// Waits until all workers of the current Run have arrived; all writes before it are visible
  /// after it. No cost with one worker.
  void Barrier(int worker);
  /// Barriers passed since the pool was made: the executor's test counts them.
  uint64_t barriers() const { return arrivals_[0].barriers.load(std::memory_order_relaxed); }

 private:
  /// Barriers that a worker has arrived at.
  struct alignas(64) Arrival {
    std::atomic<uint64_t> barriers{0};
  };
  struct alignas(64) PaddedCounter {
    std::atomic<uint32_t> value{0};
  };

  ThreadPool(int threads, std::vector<int> cpus, bool crowded);  // Without workers.
  Status Start();
  void Loop(int worker);

  const int size_;
  const int pauses_before_yield_;
  std::vector<int> cpus_;
  std::vector<std::thread> threads_;
  const std::function<void(int)>* function_ = nullptr;
  bool stopping_ = false;
  PaddedCounter generation_;       // Bumped to start a Run; workers wait on it.
  PaddedCounter finished_;         // Workers that ended the current Run.
  std::vector<Arrival> arrivals_;  // One a worker.
};

}  // namespace tessera
