// SPDX-License-Identifier: Apache-2.0
//
// WarningCounters: how many warnings answers carried, by code, and how many answers called
// functions, for the metrics page. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "server/openai/schema.h"

namespace tessera::server {

class WarningCounters {
 public:
  /// Codes are ours, few and fixed: no client can make series.
  void Add(std::span<const openai::Warning> warnings) {
    if (warnings.empty()) return;
    const std::lock_guard lock(mutex_);
    for (const openai::Warning& warning : warnings) ++counts_[warning.code];
  }

  /// An answer that called functions; `are_whole`: none of what looked like a call was left as
  /// text.
  void CountCalls(bool are_whole) {
    const std::lock_guard lock(mutex_);
    ++(are_whole ? calls_.whole : calls_.broken);
  }
  struct Calls {
    int64_t whole = 0;
    int64_t broken = 0;
  };
  Calls calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

  /// By code. The usual codes are there from the start, so that rates have a beginning.
  std::vector<std::pair<std::string, int64_t>> Snapshot() const {
    const std::lock_guard lock(mutex_);
    return {counts_.begin(), counts_.end()};
  }

 private:
  mutable std::mutex mutex_;
  Calls calls_;
  std::map<std::string, int64_t> counts_{{"normalized", 0}, {"unknown_field", 0}};
};

}  // namespace tessera::server
