// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <chrono>

#include "base/check.h"
#include "base/thread.h"

namespace tessera {
namespace {

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void PinTo(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpu), &set);
  // Pinning is for speed; a refusal (CPU taken away meanwhile) changes nothing else.
  (void)::pthread_setaffinity_np(::pthread_self(), sizeof(set), &set);
}

// Spinning this long bridges the gap between two decode steps; then the thread sleeps.
constexpr auto kSpinBetweenRuns = std::chrono::microseconds(100);
// Inside a step a worker that waits this many pauses yields once: when the machine has fewer free
// CPUs than workers, the one we wait for must get to run.
constexpr int kPausesBeforeYield = 4096;
// The same when there are fewer CPUs than workers for sure.
constexpr int kPausesWhenCrowded = 32;

template <class Done>
void SpinUntil(int pauses_before_yield, const Done& done) {
  for (int pauses = 0; !done();) {
    if (++pauses < pauses_before_yield) {
      Pause();
    } else {
      pauses = 0;
      ::sched_yield();
    }
  }
}

}  // namespace

Result<std::unique_ptr<ThreadPool>> ThreadPool::Make(int threads, std::vector<int> cpus,
                                                     bool crowded) {
  std::unique_ptr<ThreadPool> pool(new ThreadPool(threads, std::move(cpus), crowded));
  TESSERA_RETURN_IF_ERROR(pool->Start());
  return pool;
}

ThreadPool::ThreadPool(int threads, std::vector<int> cpus, bool crowded)
    : size_(threads),
      pauses_before_yield_(crowded ? kPausesWhenCrowded : kPausesBeforeYield),
      cpus_(std::move(cpus)),
      arrivals_(static_cast<size_t>(threads)) {
  TESSERA_CHECK(threads >= 1);
}

Status ThreadPool::Start() {
  threads_.reserve(static_cast<size_t>(size_ - 1));
  for (int worker = 1; worker < size_; ++worker) {
    TESSERA_ASSIGN_OR_RETURN(std::thread thread,
                             StartThread(fmt::format("worker {} of {}", worker + 1, size_),
                                         [this, worker] { Loop(worker); }));
    threads_.push_back(std::move(thread));
  }
  return {};
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  generation_.value.fetch_add(1, std::memory_order_release);
  generation_.value.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::PinCaller() const {
  if (!cpus_.empty()) PinTo(cpus_[0]);
}

void ThreadPool::Run(const std::function<void(int)>& function) {
  if (size_ == 1) {
    function(0);
    return;
  }
  function_ = &function;
  finished_.value.store(0, std::memory_order_relaxed);
  generation_.value.fetch_add(1, std::memory_order_release);
  generation_.value.notify_all();
  function(0);
  const auto others = static_cast<uint32_t>(size_ - 1);
  SpinUntil(pauses_before_yield_,
            [&] { return finished_.value.load(std::memory_order_acquire) == others; });
  function_ = nullptr;
}

void ThreadPool::Barrier(int worker) {
  std::atomic<uint64_t>& mine = arrivals_[static_cast<size_t>(worker)].barriers;
  const uint64_t barrier = mine.load(std::memory_order_relaxed) + 1;
  mine.store(barrier, std::memory_order_release);
  for (const Arrival& other : arrivals_)
    SpinUntil(pauses_before_yield_,
              [&] { return other.barriers.load(std::memory_order_acquire) >= barrier; });
}

void ThreadPool::Loop(int worker) {
  if (static_cast<size_t>(worker) < cpus_.size()) PinTo(cpus_[static_cast<size_t>(worker)]);
  uint32_t seen = 0;
  for (;;) {
    const auto deadline = std::chrono::steady_clock::now() + kSpinBetweenRuns;
    for (int pauses = 0; generation_.value.load(std::memory_order_acquire) == seen; ++pauses) {
      Pause();
      if (pauses % 64 == 63 && std::chrono::steady_clock::now() > deadline)
        generation_.value.wait(seen, std::memory_order_acquire);
    }
    ++seen;
    if (stopping_) return;
    (*function_)(worker);
    finished_.value.fetch_add(1, std::memory_order_release);
  }
}

}  // namespace tessera
