// SPDX-License-Identifier: Apache-2.0
#include "engine/kv_pool.h"

#include <algorithm>
#include <functional>

#include "base/check.h"

namespace tessera::engine {

KvPool::KvPool(int64_t page_count) {
  TESSERA_CHECK(page_count >= 0);
  users_.assign(static_cast<size_t>(page_count), 0);
  is_cached_.assign(static_cast<size_t>(page_count), false);
  free_.reserve(static_cast<size_t>(page_count));
  for (int64_t page = 0; page < page_count; ++page) free_.push_back(static_cast<PageId>(page));
}

size_t KvPool::Index(PageId page) const {
  TESSERA_CHECK(page >= 0 && page < total());
  return static_cast<size_t>(page);
}

bool KvPool::TryTake(int64_t count, std::vector<PageId>* pages) {
  TESSERA_CHECK(count >= 0);
  if (count > free()) return false;
  for (int64_t i = 0; i < count; ++i) {
    std::ranges::pop_heap(free_, std::greater<>());
    const PageId page = free_.back();
    free_.pop_back();
    users_[Index(page)] = 1;
    first_fresh_ = std::max<PageId>(first_fresh_, page + 1);
    pages->push_back(page);
  }
  return true;
}

void KvPool::AddUser(PageId page) {
  const size_t i = Index(page);
  TESSERA_CHECK(users_[i] > 0 || is_cached_[i]);
  if (users_[i]++ == 0) --idle_;
}

void KvPool::RemoveUser(PageId page) {
  const size_t i = Index(page);
  TESSERA_CHECK(users_[i] > 0);
  if (--users_[i] > 0) return;
  if (is_cached_[i]) {
    ++idle_;
  } else {
    Free(page);
  }
}

void KvPool::SetCached(PageId page) {
  const size_t i = Index(page);
  TESSERA_CHECK(users_[i] > 0 && !is_cached_[i]);
  is_cached_[i] = true;
}

void KvPool::Uncache(PageId page) {
  const size_t i = Index(page);
  TESSERA_CHECK(is_cached_[i]);
  is_cached_[i] = false;
  if (users_[i] > 0) return;
  --idle_;
  Free(page);
}

void KvPool::Free(PageId page) {
  free_.push_back(page);
  std::ranges::push_heap(free_, std::greater<>());
}

void KvPool::CheckIntegrity() const {
  std::vector<bool> is_free(users_.size(), false);
  for (const PageId page : free_) {
    TESSERA_CHECK(!is_free[Index(page)]);
    is_free[Index(page)] = true;
  }
  int64_t idle = 0;
  for (size_t i = 0; i < users_.size(); ++i) {
    TESSERA_CHECK(users_[i] >= 0);
    TESSERA_CHECK(is_free[i] == (users_[i] == 0 && !is_cached_[i]));
    if (users_[i] == 0 && is_cached_[i]) ++idle;
  }
  TESSERA_CHECK(idle == idle_);
}

}  // namespace tessera::engine
