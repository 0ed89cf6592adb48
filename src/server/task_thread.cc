// SPDX-License-Identifier: Apache-2.0
#include "server/task_thread.h"

#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/thread.h"

namespace tessera::server {

Result<std::unique_ptr<TaskThread>> TaskThread::Start(Duration period, Task tick) {
  TESSERA_CHECK(!tick || period > Duration::zero());
  std::unique_ptr<TaskThread> made(new TaskThread(period, std::move(tick)));
  TESSERA_ASSIGN_OR_RETURN(made->thread_,
                           StartThread("making answers", [raw = made.get()] { raw->Run(); }));
  return made;
}

TaskThread::~TaskThread() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void TaskThread::Post(Task task) {
  Defer(std::move(task));
  wake_.notify_one();
}

void TaskThread::Defer(Task task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
}

void TaskThread::Wake() {
  {
    const std::lock_guard lock(mutex_);
    if (tasks_.empty()) return;  // Taken already.
  }
  wake_.notify_one();
}

void TaskThread::Run() {
  using std::chrono::steady_clock;
  auto next_tick = steady_clock::now() + period_;
  while (true) {
    std::deque<Task> tasks;
    {
      std::unique_lock lock(mutex_);
      const auto is_due = [this] { return is_stopping_ || !tasks_.empty(); };
      if (tick_) {
        wake_.wait_until(lock, next_tick, is_due);
      } else {
        wake_.wait(lock, is_due);
      }
      if (is_stopping_ && tasks_.empty()) return;
      tasks.swap(tasks_);
    }
    for (Task& task : tasks) task();
    if (!tick_ || steady_clock::now() < next_tick) continue;
    tick_();
    next_tick = steady_clock::now() + period_;
  }
}

}  // namespace tessera::server
