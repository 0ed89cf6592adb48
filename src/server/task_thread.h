// SPDX-License-Identifier: Apache-2.0
//
// TaskThread: one thread that runs tasks in the order they were posted. Answers are made on it:
// detokenising, stop strings, JSON and writing happen neither on the engine thread nor on a loop of
// the HTTP server. Posting is thread-safe and never blocks for long; the queue is bounded by what
// the engine can have in flight.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/status.h"

namespace tessera::server {

class TaskThread {
 public:
  using Task = std::move_only_function<void()>;

  /// Between the tasks, `tick` runs about every `period`, which must be positive if there is one.
  /// kResourceExhausted when the system gives no thread.
  static Result<std::unique_ptr<TaskThread>> Start(Duration period = {}, Task tick = {});
  /// Runs what was posted, then joins. Nothing may be posted any more.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  void Post(Task task);
  /// Without waking the thread, for tasks that come in numbers: Wake() follows.
  void Defer(Task task);
  void Wake();

 private:
  TaskThread(Duration period, Task tick) : period_(period), tick_(std::move(tick)) {}
  void Run();

  const Duration period_;
  Task tick_;  // Of the thread.

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace tessera::server
