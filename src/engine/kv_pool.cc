// SPDX-License-Identifier: Apache-2.0
#include "engine/kv_pool.h"

#include <algorithm>
#include <functional>

#include "base/check.h"

namespace tessera::engine {

KvPool::KvPool(int64_t page_count)
    : total_(page_count), is_taken_(static_cast<size_t>(page_count), false) {
  TESSERA_CHECK(page_count >= 0);
  free_.reserve(static_cast<size_t>(page_count));
  for (int64_t page = 0; page < page_count; ++page) free_.push_back(static_cast<PageId>(page));
}

bool KvPool::TryTake(int64_t count, std::vector<PageId>* pages) {
  TESSERA_CHECK(count >= 0);
  if (count > free()) return false;
  for (int64_t i = 0; i < count; ++i) {
    std::ranges::pop_heap(free_, std::greater<>());
    const PageId page = free_.back();
    free_.pop_back();
    is_taken_[static_cast<size_t>(page)] = true;
    pages->push_back(page);
  }
  return true;
}

void KvPool::Return(std::vector<PageId>* pages) {
  for (const PageId page : *pages) {
    TESSERA_CHECK(page >= 0 && page < total_);
    TESSERA_CHECK(is_taken_[static_cast<size_t>(page)]);
    is_taken_[static_cast<size_t>(page)] = false;
    free_.push_back(page);
    std::ranges::push_heap(free_, std::greater<>());
  }
  pages->clear();
}

void KvPool::CheckIntegrity() const {
  const auto taken = std::ranges::count(is_taken_, true);
  TESSERA_CHECK(taken + free() == total_);
  std::vector<bool> seen(static_cast<size_t>(total_), false);
  for (const PageId page : free_) {
    TESSERA_CHECK(page >= 0 && page < total_);
    TESSERA_CHECK(!seen[static_cast<size_t>(page)]);
    TESSERA_CHECK(!is_taken_[static_cast<size_t>(page)]);
    seen[static_cast<size_t>(page)] = true;
  }
}

}  // namespace tessera::engine
