// SPDX-License-Identifier: Apache-2.0
//
// MemoryUse: resident memory by owner, as the kernel counts it. The owners' shares sum to what is
// resident: ranges with a known owner are looked up page by page, the rest is told apart by kind.
// Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/process_memory.h"
#include "base/status.h"

namespace tessera::server {

/// Addresses that have one purpose for the life of the process. Ranges must not overlap.
struct OwnedMemory {
  std::string owner;
  AddressRange range;
  bool is_file = false;  // A mapped file; otherwise anonymous.
};

class MemoryUse {
 public:
  struct Reading {
    uint64_t resident_bytes = 0;
    /// Each owner of the ranges, then "code" (the program and its libraries, other mapped files)
    /// and "other" (heap, stacks). Sums to resident_bytes, except for what changed while it was
    /// read.
    std::vector<std::pair<std::string, uint64_t>> owners;
  };

  /// `clock` must outlive it.
  MemoryUse(std::vector<OwnedMemory> memory, const Clock* clock)
      : memory_(std::move(memory)), clock_(clock) {}

  /// At most kMemoryReadingAge old, since reading looks at every page of the ranges. Errors are
  /// those of base/process_memory.h.
  Result<Reading> Read() const;

 private:
  const std::vector<OwnedMemory> memory_;
  const Clock* const clock_;
  mutable std::mutex mutex_;  // Guards the next two.
  mutable std::optional<Result<Reading>> last_;
  mutable TimePoint read_at_{};
};

/// Shares of `whole` by owner; `resident` are the bytes of `memory`, one each. Pure.
MemoryUse::Reading ShareOut(const ProcessMemory& whole, const std::vector<OwnedMemory>& memory,
                            const std::vector<uint64_t>& resident);

}  // namespace tessera::server
