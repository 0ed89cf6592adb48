// SPDX-License-Identifier: Apache-2.0
//
// KvPool: which pages of the session's KV memory are free. It owns numbers, not memory. Engine
// thread only. Pages are handed out lowest number first, so that runs are reproducible.
//
// Invariants (CheckIntegrity):
//   1. used + free = total.   2. No page is free twice.   3. Free pages are in [0, total).
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/session.h"

namespace tessera::engine {

using runtime::PageId;

class KvPool {
 public:
  explicit KvPool(int64_t page_count);
  int64_t total() const { return total_; }
  int64_t free() const { return static_cast<int64_t>(free_.size()); }
  int64_t used() const { return total_ - free(); }

  /// Appends `count` pages to `pages`. False, changing nothing, when fewer are free.
  bool TryTake(int64_t count, std::vector<PageId>* pages);
  /// Returns all of `pages` and clears it. Every page must have come from TryTake.
  void Return(std::vector<PageId>* pages);
  /// Aborts when an invariant is broken. O(total).
  void CheckIntegrity() const;

 private:
  int64_t total_;
  std::vector<PageId> free_;    // Min-heap.
  std::vector<bool> is_taken_;  // [total]
};

/// Pages that hold `tokens` positions.
inline int64_t PagesFor(int64_t tokens, int64_t page_tokens) {
  return (tokens + page_tokens - 1) / page_tokens;
}

}  // namespace tessera::engine
