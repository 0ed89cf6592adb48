// SPDX-License-Identifier: Apache-2.0
//
// WarningCounters: how many warnings answers carried, by code, for the metrics page. Thread-safe.
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

  /// By code. The usual codes are there from the start, so that rates have a beginning.
  std::vector<std::pair<std::string, int64_t>> Snapshot() const {
    const std::lock_guard lock(mutex_);
    return {counts_.begin(), counts_.end()};
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int64_t> counts_{{"normalized", 0}, {"unknown_field", 0}};
};

}  // namespace tessera::server
