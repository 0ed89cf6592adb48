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

void SpinUntilChanged(const std::atomic<uint32_t>& counter, uint32_t old) {
  for (int pauses = 0; counter.load(std::memory_order_acquire) == old;) {
    if (++pauses < kPausesBeforeYield) {
      Pause();
    } else {
      pauses = 0;
      ::sched_yield();
    }
  }
}

}  // namespace

Result<std::unique_ptr<ThreadPool>> ThreadPool::Make(int threads, std::vector<int> cpus) {
  std::unique_ptr<ThreadPool> pool(new ThreadPool(threads, std::move(cpus)));
  TESSERA_RETURN_IF_ERROR(pool->Start());
  return pool;
}

ThreadPool::ThreadPool(int threads, std::vector<int> cpus)
    : size_(threads), cpus_(std::move(cpus)) {
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
  for (uint32_t done; (done = finished_.value.load(std::memory_order_acquire)) != others;)
    SpinUntilChanged(finished_.value, done);
  function_ = nullptr;
}

void ThreadPool::Barrier() {
  if (size_ == 1) {
    barriers_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const uint32_t phase = phase_.value.load(std::memory_order_acquire);
  if (arrived_.value.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(size_)) {
    arrived_.value.store(0, std::memory_order_relaxed);
    barriers_.fetch_add(1, std::memory_order_relaxed);
    phase_.value.fetch_add(1, std::memory_order_release);
  } else {
    SpinUntilChanged(phase_.value, phase);
  }
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
