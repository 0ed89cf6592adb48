// SPDX-License-Identifier: Apache-2.0
//
// Brake: holds a fake model inside its steps, so that tests see a server at work.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "support/fake_session.h"

namespace tessera::testing {

/// A session that waits in each step (after the proving one) until let go.
class Brake {
 public:
  FakeSessionOptions Options() {
    FakeSessionOptions options;
    options.on_step = [this](int64_t step) {
      std::unique_lock lock(mutex_);
      if (step > 0) {
        ++arrived_;
        changed_.notify_all();
        changed_.wait(lock, [this] { return released_; });
      }
      return Status();
    };
    return options;
  }
  void AwaitStep() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return arrived_ > 0; });
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  bool released_ = false;
};

}  // namespace tessera::testing
