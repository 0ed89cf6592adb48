// SPDX-License-Identifier: Apache-2.0
//
// MaskWorker: computes the masks of constrained sequences beside the model. While the model works
// on the logits of a sequence's next token, a thread of the worker takes in the last token and
// computes what may follow; when the logits come, the mask is usually there. A SequenceMask is one
// sequence's side of it, held by the engine thread.
//
// Threads: the worker's are started with the first constrained sequence. All functions are for the
// engine thread; `on_ready` is called on a thread of the worker.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/status.h"
#include "engine/token_constraint.h"

namespace tessera::engine {

class SequenceMask {
 public:
  SequenceMask(std::shared_ptr<TokenConstraint> constraint, int64_t vocab_size)
      : constraint_(std::move(constraint)), mask_(static_cast<size_t>((vocab_size + 31) / 32)) {}

  /// What follows may be read until the next MaskWorker::Accept. False: it is being computed.
  bool is_ready() const { return is_ready_.load(std::memory_order_acquire); }
  const Status& status() const { return status_; }  // Not ok: the constraint failed.
  const TokenConstraint::Next& next() const { return next_; }
  std::span<const uint32_t> mask() const { return mask_; }

 private:
  friend class MaskWorker;
  void Work();

  const std::shared_ptr<TokenConstraint> constraint_;
  std::vector<uint32_t> mask_;
  std::optional<text::TokenId> accepted_;  // To be taken in first.
  TokenConstraint::Next next_;
  Status status_;
  std::atomic<bool> is_ready_ = false;
  bool is_discarded_ = false;  // Under the worker's mutex.
};

class MaskWorker {
 public:
  /// `on_ready` may be empty.
  MaskWorker(int64_t vocab_size, int threads, std::function<void()> on_ready);
  ~MaskWorker();
  MaskWorker(const MaskWorker&) = delete;
  MaskWorker& operator=(const MaskWorker&) = delete;

  /// Begins with the mask of the first token.
  std::shared_ptr<SequenceMask> Begin(std::shared_ptr<TokenConstraint> constraint);
  /// Requires is_ready(), a good status and a token of the mask.
  void Accept(const std::shared_ptr<SequenceMask>& mask, text::TokenId token);
  /// Waits until the mask is ready or `deadline` has come.
  void Wait(const SequenceMask& mask, std::chrono::steady_clock::time_point deadline);
  /// Takes a mask that is no longer wanted: its constraint may be large, the worker frees it.
  void Discard(std::shared_ptr<SequenceMask> mask);

 private:
  Status EnsureThreads();
  void Post(std::shared_ptr<SequenceMask> mask);
  void Run();

  const int64_t vocab_size_;
  const int thread_count_;
  const std::function<void()> on_ready_;

  std::mutex mutex_;  // Guards all below, and orders is_ready with ready_.
  std::condition_variable work_;
  std::condition_variable ready_;
  std::deque<std::shared_ptr<SequenceMask>> queue_;
  std::deque<std::shared_ptr<SequenceMask>> garbage_;
  bool is_stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tessera::engine
