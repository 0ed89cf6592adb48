// SPDX-License-Identifier: Apache-2.0
//
// WorkerPool: a few threads and a bounded queue, for handlers. Tasks run in order of arrival; an
// exception ends its task only. TryPost is thread-safe; Stop and the destructor belong to the
// owner.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/status.h"

namespace tessera::net {

class WorkerPool {
 public:
  /// kResourceExhausted when the system gives no more threads; those started are ended.
  static Result<std::unique_ptr<WorkerPool>> Make(int threads, size_t queue_max);
  ~WorkerPool();

  /// False when the queue is full or the pool was stopped.
  bool TryPost(std::function<void()> task);
  /// Drops what waits, waits for what runs.
  void Stop();

 private:
  explicit WorkerPool(size_t queue_max) : queue_max_(queue_max) {}
  void Loop();

  const size_t queue_max_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool is_stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tessera::net
