// SPDX-License-Identifier: Apache-2.0
#include "engine/mask_worker.h"

#include <utility>

#include "base/check.h"
#include "base/thread.h"

namespace tessera::engine {

void SequenceMask::Work() {
  if (accepted_.has_value()) status_ = constraint_->Accept(*std::exchange(accepted_, {}));
  if (!status_.ok()) return;
  auto next = constraint_->ComputeMask(mask_);
  if (next.has_value()) {
    next_ = *next;
  } else {
    status_ = std::move(next).error();
  }
}

MaskWorker::MaskWorker(int64_t vocab_size, int threads, std::function<void()> on_ready)
    : vocab_size_(vocab_size), thread_count_(threads), on_ready_(std::move(on_ready)) {
  TESSERA_CHECK(threads > 0);
}

MaskWorker::~MaskWorker() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::shared_ptr<SequenceMask> MaskWorker::Begin(std::shared_ptr<TokenConstraint> constraint) {
  auto mask = std::make_shared<SequenceMask>(std::move(constraint), vocab_size_);
  if (Status status = EnsureThreads(); !status.ok()) {
    mask->status_ = std::move(status);
    mask->is_ready_.store(true, std::memory_order_release);
    return mask;
  }
  Post(mask);
  return mask;
}

void MaskWorker::Accept(const std::shared_ptr<SequenceMask>& mask, text::TokenId token) {
  TESSERA_CHECK(mask->is_ready() && mask->status_.ok());
  mask->accepted_ = token;
  mask->is_ready_.store(false, std::memory_order_release);
  Post(mask);
}

void MaskWorker::Wait(const SequenceMask& mask, std::chrono::steady_clock::time_point deadline) {
  if (mask.is_ready()) return;
  std::unique_lock lock(mutex_);
  ready_.wait_until(lock, deadline, [&] { return mask.is_ready(); });
}

void MaskWorker::Discard(std::shared_ptr<SequenceMask> mask) {
  {
    const std::lock_guard lock(mutex_);
    mask->is_discarded_ = true;
    garbage_.push_back(std::move(mask));
  }
  work_.notify_one();
}

Status MaskWorker::EnsureThreads() {
  while (std::ssize(threads_) < thread_count_) {
    auto thread = StartThread("masks of constrained output", [this] { Run(); });
    // One is enough to go on with.
    if (!thread.has_value()) return threads_.empty() ? std::move(thread).error() : Status();
    threads_.push_back(*std::move(thread));
  }
  return {};
}

void MaskWorker::Post(std::shared_ptr<SequenceMask> mask) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(mask));
  }
  work_.notify_one();
}

void MaskWorker::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return is_stopping_ || !queue_.empty() || !garbage_.empty(); });
    if (is_stopping_) return;
    if (queue_.empty()) {  // Nobody waits for the freeing of memory.
      const std::shared_ptr<SequenceMask> dead = std::move(garbage_.front());
      garbage_.pop_front();
      lock.unlock();
      // `dead` ends with this block, outside the lock.
    } else {
      const std::shared_ptr<SequenceMask> mask = std::move(queue_.front());
      queue_.pop_front();
      if (mask->is_discarded_) continue;  // The sequence was cancelled; `garbage_` has it, too.
      lock.unlock();
      mask->Work();
      lock.lock();
      mask->is_ready_.store(true, std::memory_order_release);
      lock.unlock();
      ready_.notify_all();
      if (on_ready_) on_ready_();
    }
    lock.lock();
  }
}

}  // namespace tessera::engine
