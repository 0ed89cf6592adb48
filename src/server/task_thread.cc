// SPDX-License-Identifier: Apache-2.0
#include "server/task_thread.h"

#include <utility>

#include "base/thread.h"

namespace tessera::server {

Result<std::unique_ptr<TaskThread>> TaskThread::Start() {
  std::unique_ptr<TaskThread> made(new TaskThread());
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
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void TaskThread::Run() {
  while (true) {
    std::deque<Task> tasks;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return is_stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      tasks.swap(tasks_);
    }
    for (Task& task : tasks) task();
  }
}

}  // namespace tessera::server
