// SPDX-License-Identifier: Apache-2.0
//
// KvPool: the state of every page of the session's KV memory. It owns numbers, not memory. Engine
// thread only. A page is
//   free    nobody uses it and its contents mean nothing;
//   used    by `users` sequences; with more than one its contents are shared and only read;
//   idle    nobody uses it, but the prefix cache knows its contents: it can be had at any time.
// Cached says that the prefix cache knows a page, used or idle. Free pages are handed out lowest
// number first, so that runs are reproducible and memory is touched late.
//
// Invariants (CheckIntegrity):
//   1. free + idle + used = total.   2. A page is free exactly when it has no user and is not
//   cached.
//   3. Free pages are distinct and in [0, total).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/session.h"

namespace tessera::engine {

using runtime::PageId;

class KvPool {
 public:
  explicit KvPool(int64_t page_count);
  int64_t total() const { return static_cast<int64_t>(users_.size()); }
  int64_t free() const { return static_cast<int64_t>(free_.size()); }
  int64_t idle() const { return idle_; }
  int64_t used() const { return total() - free() - idle(); }
  /// Pages below this one have been handed out before, the others never.
  PageId first_fresh() const { return first_fresh_; }
  /// [total]: sequences that use each page.
  std::span<const int32_t> users() const { return users_; }
  bool is_cached(PageId page) const { return is_cached_[Index(page)]; }

  /// Appends `count` free pages to `pages`, each with one user. False, changing nothing, when fewer
  /// are free.
  bool TryTake(int64_t count, std::vector<PageId>* pages);
  /// One more user of a page that is used or idle.
  void AddUser(PageId page);
  /// One user less: with the last one the page becomes idle or free.
  void RemoveUser(PageId page);
  /// The prefix cache learns the contents of a used page.
  void SetCached(PageId page);
  /// The prefix cache forgets it: an idle page becomes free.
  void Uncache(PageId page);
  /// Aborts when an invariant is broken. O(total).
  void CheckIntegrity() const;

 private:
  size_t Index(PageId page) const;
  void Free(PageId page);

  std::vector<PageId> free_;     // Min-heap.
  std::vector<int32_t> users_;   // [total]
  std::vector<bool> is_cached_;  // [total]
  int64_t idle_ = 0;
  PageId first_fresh_ = 0;
};

/// Pages that hold `tokens` positions.
inline int64_t PagesFor(int64_t tokens, int64_t page_tokens) {
  return (tokens + page_tokens - 1) / page_tokens;
}

}  // namespace tessera::engine
