// SPDX-License-Identifier: Apache-2.0
//
// CallerPin: the calling thread is worker 0 of the pool and stays on its core while a step runs,
// and only then. A pin that lasted would be inherited by every thread that the caller starts later,
// and would make the machine look like one core to whoever reads the topology next.
#pragma once

#include <pthread.h>
#include <sched.h>

#include "base/thread_pool.h"

namespace tessera::runtime {

class CallerPin {
 public:
  /// Does nothing when the pool was made without CPUs. Two system calls, about a microsecond.
  explicit CallerPin(const ThreadPool& pool) {
    saved_ = ::pthread_getaffinity_np(::pthread_self(), sizeof(mask_), &mask_) == 0;
    if (saved_) pool.PinCaller();
  }
  ~CallerPin() {
    // A refusal (the mask shrank meanwhile) leaves the thread on the core it ran on.
    if (saved_) (void)::pthread_setaffinity_np(::pthread_self(), sizeof(mask_), &mask_);
  }
  CallerPin(const CallerPin&) = delete;
  CallerPin& operator=(const CallerPin&) = delete;

 private:
  cpu_set_t mask_;
  bool saved_ = false;
};

}  // namespace tessera::runtime
