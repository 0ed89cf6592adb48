// SPDX-License-Identifier: Apache-2.0
//
// FormCheck: holds finished answers against the form that was asked for. It stands between a
// Generation and the listener that writes the answer, as BestOf does. What does not fit is a bug of
// ours and no answer: the client gets an error, and a counter says so. Lives on the task thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "server/generation.h"

namespace tessera::server {

/// Finished answers that had a form. Thread-safe.
class FormCounters {
 public:
  struct Counts {
    int64_t valid = 0;
    int64_t cut = 0;      // By max_tokens or by what the client gave to stop at.
    int64_t invalid = 0;  // Our bugs.
  };
  void Add(const Counts& more);
  Counts Snapshot() const;

 private:
  mutable std::mutex mutex_;
  Counts counts_;
};

/// `listener` itself when no choice has a form. `counters` must outlive the listener.
std::unique_ptr<GenerationListener> MakeFormCheck(std::unique_ptr<GenerationListener> listener,
                                                  const std::vector<ChoiceSpec>& choices,
                                                  FormCounters* counters);

}  // namespace tessera::server
