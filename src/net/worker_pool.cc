// SPDX-License-Identifier: Apache-2.0
#include "net/worker_pool.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/thread.h"

namespace tessera::net {

Result<std::unique_ptr<WorkerPool>> WorkerPool::Make(int threads, size_t queue_max) {
  TESSERA_CHECK(threads > 0);
  std::unique_ptr<WorkerPool> pool(new WorkerPool(queue_max));
  for (int i = 0; i < threads; ++i) {
    TESSERA_ASSIGN_OR_RETURN(std::thread thread,
                             StartThread(fmt::format("HTTP worker {} of {}", i + 1, threads),
                                         [raw = pool.get()] { raw->Loop(); }));
    pool->threads_.push_back(std::move(thread));
  }
  return pool;
}

WorkerPool::~WorkerPool() {
  Stop();
}

bool WorkerPool::TryPost(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (is_stopping_ || queue_.size() >= queue_max_) return false;
    queue_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

void WorkerPool::Stop() {
  std::deque<std::function<void()>> dropped;  // Destroyed outside the lock: tasks own writers.
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    dropped.swap(queue_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void WorkerPool::Loop() {
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_stopping_ || !queue_.empty(); });
      if (is_stopping_) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    // What a handler lets escape must not end the process: its request alone fails.
    try {
      task();
    } catch (const std::exception& error) {
      log::error("net: a handler threw: {}", error.what());
    } catch (...) {
      log::error("net: a handler threw");
    }
  }
}

}  // namespace tessera::net
