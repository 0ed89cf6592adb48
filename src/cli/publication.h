// SPDX-License-Identifier: Apache-2.0
//
// Publication: a bundle that is still being made, on a thread of its own, while the model in it
// runs already. What is left to do then (hashes, the tokenizer's table, the disk) gets the cores
// that answering leaves idle.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "base/status.h"

namespace tessera::cli {

class Publication {
 public:
  /// Calls `make` on a new thread. kResourceExhausted when there is none.
  static Result<std::shared_ptr<Publication>> Begin(std::function<Status()> make);
  ~Publication();  // Waits.
  Publication(const Publication&) = delete;
  Publication& operator=(const Publication&) = delete;

  /// What `make` returned, once it has. One thread calls it.
  Status Wait();
  /// Whether it has returned an error. Any thread.
  bool HasFailed() const { return has_failed_; }

  /// From now on others go before the calling thread, and before those that it starts.
  static void GiveWay();

 private:
  Publication() = default;
  Status status_;  // The thread's, until it is joined.
  std::atomic<bool> has_failed_ = false;
  std::thread thread_;
};

}  // namespace tessera::cli
