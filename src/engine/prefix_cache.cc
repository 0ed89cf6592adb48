// SPDX-License-Identifier: Apache-2.0
#include "engine/prefix_cache.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/limits.h"

namespace tessera::engine {

PrefixCache::PrefixCache(KvPool* pool, int64_t page_tokens, int64_t idle_pages_max,
                         std::optional<PageSpill> spill)
    : pool_(pool),
      page_tokens_(page_tokens),
      idle_pages_max_(idle_pages_max),
      spill_(std::move(spill)),
      tree_(pool->total(), page_tokens),
      hashes_(spill_.has_value() ? static_cast<size_t>(pool->total()) : 0),
      idle_since_(static_cast<size_t>(pool->total()), 0) {
  TESSERA_CHECK(idle_pages_max >= 0);
}

PageId PrefixCache::LastStored(const SequencePages& pages) {
  return pages.stored == 0 ? PageTree::kRoot : pages.ids[static_cast<size_t>(pages.stored - 1)];
}

PrefixCache::Contents PrefixCache::PageOf(std::span<const TokenId> tokens, int64_t index,
                                          int64_t end) const {
  const int64_t begin = std::min(index * page_tokens_, end);
  return tokens.subspan(static_cast<size_t>(begin),
                        static_cast<size_t>(std::min(page_tokens_, end - begin)));
}

PrefixMatch PrefixCache::Find(std::span<const TokenId> tokens) const {
  const auto end = static_cast<int64_t>(tokens.size()) - 1;
  PrefixMatch match;
  PageId parent = PageTree::kRoot;
  PageTree::Child best;
  for (;;) {
    const Contents contents = PageOf(tokens, match.pages, end);
    if (contents.empty()) return match;
    best = tree_.BestChild(parent, contents);
    match.tokens += best.common;
    if (best.common < page_tokens_) break;
    parent = best.page;
    ++match.pages;
    match.idle_pages += IsIdle(parent) ? 1 : 0;
  }
  if (match.tokens < end) match.miss = MissAt(tokens, match.pages, parent, best);
  return match;
}

CacheMiss PrefixCache::MissAt(std::span<const TokenId> tokens, int64_t pages, PageId parent,
                              PageTree::Child best) const {
  const int64_t position = pages * page_tokens_ + best.common;
  const Contents contents = PageOf(tokens, pages, static_cast<int64_t>(tokens.size()));
  if (static_cast<int64_t>(contents.size()) == page_tokens_ &&
      evicted_.contains(PageKey(tree_.KeyOf(parent), contents)))
    return {CacheMiss::Reason::kEvicted, position};
  // Something goes on from here, but with another token.
  const bool differs = best.page != PageTree::kNone
                           ? best.common < tree_.TokensOf(best.page)
                           : parent != PageTree::kRoot && !tree_.IsLeaf(parent);
  return {differs ? CacheMiss::Reason::kDiffers : CacheMiss::Reason::kNeverStored, position};
}

void PrefixCache::Share(std::span<const TokenId> tokens, SequencePages* pages) {
  TESSERA_CHECK(pages->ids.empty() && pages->stored == 0);
  const auto end = static_cast<int64_t>(tokens.size()) - 1;
  for (;;) {
    const Contents contents = PageOf(tokens, pages->stored, end);
    const PageTree::Child best = tree_.BestChild(LastStored(*pages), contents);
    if (best.common < page_tokens_) return;
    Use(best.page);
    pages->ids.push_back(best.page);
    ++pages->stored;
  }
}

std::optional<TailCopy> PrefixCache::TakeTail(std::span<const TokenId> tokens,
                                              SequencePages* pages) {
  TESSERA_CHECK(static_cast<int64_t>(pages->ids.size()) == pages->stored);
  const Contents contents = PageOf(tokens, pages->stored, static_cast<int64_t>(tokens.size()) - 1);
  const PageTree::Child best = tree_.BestChild(LastStored(*pages), contents);
  if (best.common == 0) return std::nullopt;
  Use(best.page);  // Its contents are needed: it must not be the page that is given up.
  const bool taken = TryTake(1, pages);
  Leave(best.page);
  if (!taken) return std::nullopt;
  return TailCopy{best.page, pages->ids.back(), best.common};
}

bool PrefixCache::TryTake(int64_t count, SequencePages* pages) {
  if (count > available()) return false;
  while (pool_->free() < count) EvictOne();
  return pool_->TryTake(count, &pages->ids);
}

void PrefixCache::Store(std::span<const TokenId> tokens, bool with_rest, SequencePages* pages) {
  const auto end = static_cast<int64_t>(tokens.size());
  TESSERA_CHECK(end <= static_cast<int64_t>(pages->ids.size()) * page_tokens_);
  while ((pages->stored + 1) * page_tokens_ <= end) {
    PageId& page = pages->ids[static_cast<size_t>(pages->stored)];
    page = StorePage(LastStored(*pages), PageOf(tokens, pages->stored, end), page);
    ++pages->stored;
  }
  const Contents rest = PageOf(tokens, pages->stored, end);
  if (with_rest && !rest.empty())
    StorePage(LastStored(*pages), rest, pages->ids[static_cast<size_t>(pages->stored)]);
}

/// Returns the page that stands for the contents from now on.
PageId PrefixCache::StorePage(PageId parent, Contents contents, PageId page) {
  const PageTree::Child best = tree_.BestChild(parent, contents);
  if (best.common == static_cast<int64_t>(contents.size())) {
    // A partial page stays with its owner, who goes on writing it.
    if (best.common < page_tokens_ || best.page == page) return page;
    Use(best.page);
    pool_->RemoveUser(page);
    return best.page;
  }
  // What was a beginning of these contents says nothing more; often it is this very page.
  if (best.page != PageTree::kNone && best.common == tree_.TokensOf(best.page)) Forget(best.page);
  tree_.Add(parent, contents, page);
  if (spill_.has_value() && tree_.IsWhole(page))
    hashes_[static_cast<size_t>(page)] = HashOfPage(HashOf(parent), contents);
  pool_->SetCached(page);
  return page;
}

const PageHash& PrefixCache::HashOf(PageId page) const {
  return page == PageTree::kRoot ? spill_->root : hashes_[static_cast<size_t>(page)];
}

int64_t PrefixCache::Adopt(std::span<const TokenId> tokens, int64_t first,
                           std::span<const PageHash> hashes,
                           const std::function<void(int64_t i, PageId page)>& fill) {
  TESSERA_CHECK(spill_.has_value());
  const int64_t end = first + std::ssize(hashes);
  TESSERA_CHECK(end * page_tokens_ <= static_cast<int64_t>(tokens.size()));
  // Held like a sequence's, so that none of them is the page that is given up.
  SequencePages path;
  int64_t index = 0;
  for (; index < end; ++index) {
    const PageId parent = path.ids.empty() ? PageTree::kRoot : path.ids.back();
    const Contents contents = PageOf(tokens, index, static_cast<int64_t>(tokens.size()));
    const PageTree::Child best = tree_.BestChild(parent, contents);
    if (best.common == page_tokens_) {
      Use(best.page);
      path.ids.push_back(best.page);
      continue;
    }
    if (index < first || idle_pages_max_ == 0 || !TryTake(1, &path)) break;
    fill(index - first, path.ids.back());
    StorePage(parent, contents, path.ids.back());
    TESSERA_CHECK(HashOf(path.ids.back()) == hashes[static_cast<size_t>(index - first)]);
  }
  Release(&path);
  return std::max<int64_t>(index - first, 0);
}

void PrefixCache::SpillAll(const std::function<bool()>& goes_on) const {
  TESSERA_CHECK(spill_.has_value() && pool_->used() == 0);
  std::vector<PageId> pages;
  for (int64_t i = 0; i < pool_->total(); ++i) {
    const auto page = static_cast<PageId>(i);
    if (tree_.Contains(page) && tree_.IsWhole(page)) pages.push_back(page);
  }
  std::ranges::sort(pages, std::ranges::greater(),
                    [this](PageId page) { return idle_since_[static_cast<size_t>(page)]; });
  for (const PageId page : pages) {
    if (!goes_on()) return;
    spill_->take(page, HashOf(page));
  }
}

void PrefixCache::Use(PageId page) {
  if (IsIdle(page)) evictable_.erase({idle_since_[static_cast<size_t>(page)], page});
  pool_->AddUser(page);
}

void PrefixCache::Leave(PageId page) {
  pool_->RemoveUser(page);
  if (!pool_->is_cached(page) || !IsIdle(page)) return;
  idle_since_[static_cast<size_t>(page)] = ++clock_;
  if (tree_.IsLeaf(page)) evictable_.insert({clock_, page});
}

void PrefixCache::Release(SequencePages* pages) {
  // From the end, so that no page is idle before those behind it are.
  while (!pages->ids.empty()) {
    Leave(pages->ids.back());
    pages->ids.pop_back();
  }
  pages->stored = 0;
  while (pool_->idle() > idle_pages_max_) EvictOne();
}

void PrefixCache::Forget(PageId page) {
  const PageId parent = tree_.ParentOf(page);
  evictable_.erase({idle_since_[static_cast<size_t>(page)], page});
  tree_.Remove(page);
  pool_->Uncache(page);
  if (parent != PageTree::kRoot && IsIdle(parent) && tree_.IsLeaf(parent))
    evictable_.insert({idle_since_[static_cast<size_t>(parent)], parent});
}

void PrefixCache::EvictOne() {
  TESSERA_CHECK(!evictable_.empty());
  const PageId page = evictable_.begin()->second;
  if (spill_.has_value() && tree_.IsWhole(page)) spill_->take(page, HashOf(page));
  if (tree_.IsWhole(page) && evicted_.insert(tree_.KeyOf(page)).second) {
    evicted_order_.push_back(tree_.KeyOf(page));
    if (static_cast<int64_t>(evicted_order_.size()) > kEvictedPagesRemembered) {
      evicted_.erase(evicted_order_.front());
      evicted_order_.pop_front();
    }
  }
  Forget(page);
  ++evictions_;
}

void PrefixCache::CheckIntegrity() const {
  pool_->CheckIntegrity();
  tree_.CheckIntegrity();
  int64_t cached = 0;
  int64_t listed = 0;
  for (int64_t i = 0; i < pool_->total(); ++i) {
    const auto page = static_cast<PageId>(i);
    TESSERA_CHECK(tree_.Contains(page) == pool_->is_cached(page));
    if (!tree_.Contains(page)) continue;
    ++cached;
    const PageId parent = tree_.ParentOf(page);
    if (!IsIdle(page)) {
      TESSERA_CHECK(parent == PageTree::kRoot || !IsIdle(parent));
      continue;
    }
    const bool is_listed = evictable_.contains({idle_since_[static_cast<size_t>(page)], page});
    TESSERA_CHECK(is_listed == tree_.IsLeaf(page));
    listed += is_listed ? 1 : 0;
  }
  TESSERA_CHECK(cached == tree_.size());
  TESSERA_CHECK(listed == static_cast<int64_t>(evictable_.size()));
  TESSERA_CHECK(pool_->idle() <= idle_pages_max_);
}

}  // namespace tessera::engine
