// SPDX-License-Identifier: Apache-2.0
//
// PrefixCache: keeps the KV of contexts that were computed, so that a prompt which begins like one
// of them is not computed again (radix tree: Zheng et al., "SGLang", 2024). It is also the only way
// by which sequences get and give back pages, since pages that are only cached are given up, least
// recently used leaf first, whenever somebody needs one: caching never keeps anyone waiting.
//
// Whole pages are shared: the sequences read the same page. Of the page after them, the positions
// that match are copied into a page of the sequence's own (CopyTail), which it then goes on
// writing. A sequence tells what it has computed with Store: whole pages at once, so that requests
// in flight share, too; its unfinished last page when the prompt is complete and when it ends. Such
// a page goes on being written by its owner behind the tokens that are stored, which never change.
// Two sequences that computed the same page separately are merged to one copy: KV of the same
// context is the same bytes (runtime/session.h).
//
// Behind it there may be a slower store (page_store.h). Whole pages that are given up are offered
// to it first, and pages that come back from it are adopted: idle, as if a sequence had computed
// them and gone.
//
// Invariants (CheckIntegrity, with those of KvPool and PageTree):
//   1. The nodes of the tree are the cached pages.
//   2. Who uses a page of the tree uses all pages on its path; so below an idle page all are idle.
//   3. The idle leaves are listed for eviction; at most idle_pages_max pages are idle.
//
// Engine thread only. Numbers only: the owner copies and writes the memory.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/kv_pool.h"
#include "engine/page_hash.h"
#include "engine/page_tree.h"
#include "engine/request.h"

namespace tessera::engine {

/// The pages of one sequence. Page ids[i] holds positions [i, i + 1) * page_tokens.
struct SequencePages {
  std::vector<PageId> ids;
  int64_t stored = 0;  // The first so many are whole pages in the tree, a path from its root.
};

struct PrefixMatch {
  int64_t tokens = 0;      // Leading tokens whose KV is there, less than all.
  int64_t pages = 0;       // Of these in whole pages, to be shared.
  int64_t idle_pages = 0;  // Of these pages, how many nobody uses now.
  CacheMiss miss;          // Why it ends there.
};

/// Copy page `from` to page `to`; its first `tokens` positions are then computed.
struct TailCopy {
  PageId from = 0;
  PageId to = 0;
  int64_t tokens = 0;
};

/// Where whole pages go that the cache gives up. `take` is called while the page has its contents.
struct PageSpill {
  PageHash root{};  // Name of the empty context.
  std::function<void(PageId page, const PageHash& hash)> take = {};
};

class PrefixCache {
 public:
  /// At most `idle_pages_max` pages that nobody uses are kept. `pool` must outlive the cache.
  PrefixCache(KvPool* pool, int64_t page_tokens, int64_t idle_pages_max,
              std::optional<PageSpill> spill = {});

  /// The longest stored beginning of `tokens`, which always leaves the last token to compute.
  PrefixMatch Find(std::span<const TokenId> tokens) const;
  /// Begins a sequence that has no page: it shares the whole pages of the match.
  void Share(std::span<const TokenId> tokens, SequencePages* pages);
  /// Then: takes a page for what the match has beyond them. The copy is to be made before any other
  /// call here. Nothing when there is no more, or no page for it.
  std::optional<TailCopy> TakeTail(std::span<const TokenId> tokens, SequencePages* pages);

  /// Pages that can be taken.
  int64_t available() const { return pool_->free() + pool_->idle(); }
  /// Appends `count` pages, giving up cached ones if need be. False, changing nothing, when fewer
  /// are available.
  bool TryTake(int64_t count, SequencePages* pages);
  /// The sequence has computed `tokens`: stores its whole pages and, `with_rest`, the begun one.
  /// Pages that are known already are exchanged for the stored ones.
  void Store(std::span<const TokenId> tokens, bool with_rest, SequencePages* pages);
  /// Gives all pages back; what is stored stays, within the limit.
  void Release(SequencePages* pages);

  /// Whole pages [first, first + hashes) of `tokens` have come back, under these names: each that
  /// is not known gets a page, which `fill(i, page)` writes at once, i counted from `first`. Aborts
  /// when a name is not that of the page. Returns how many of them,
  /// from the first on, are in the cache; fewer when those before are gone or there is no page to
  /// be had. The limit of idle pages may take some again.
  int64_t Adopt(std::span<const TokenId> tokens, int64_t first, std::span<const PageHash> hashes,
                const std::function<void(int64_t i, PageId page)>& fill);
  /// Offers all whole pages to the spill, those used last first, while `goes_on`. Requires one, and
  /// nobody who uses pages.
  void SpillAll(const std::function<bool()>& goes_on) const;

  int64_t pages() const { return tree_.size(); }
  int64_t evictions() const { return evictions_; }
  void CheckIntegrity() const;

 private:
  using Contents = std::span<const TokenId>;
  static PageId LastStored(const SequencePages& pages);
  /// Tokens of page `index` among the first `end`; fewer than a page at the end, empty behind it.
  Contents PageOf(std::span<const TokenId> tokens, int64_t index, int64_t end) const;
  CacheMiss MissAt(std::span<const TokenId> tokens, int64_t pages, PageId parent,
                   PageTree::Child best) const;
  PageId StorePage(PageId parent, Contents contents, PageId page);
  void Use(PageId page);
  void Leave(PageId page);
  void Forget(PageId page);
  void EvictOne();
  const PageHash& HashOf(PageId page) const;
  bool IsIdle(PageId page) const { return pool_->users()[static_cast<size_t>(page)] == 0; }

  KvPool* const pool_;
  const int64_t page_tokens_;
  const int64_t idle_pages_max_;
  const std::optional<PageSpill> spill_;
  PageTree tree_;
  std::vector<PageHash> hashes_;                     // Of whole pages; empty without a spill.
  uint64_t clock_ = 0;                               // Counts what became idle.
  std::vector<uint64_t> idle_since_;                 // [pages of the pool]
  std::set<std::pair<uint64_t, PageId>> evictable_;  // Idle leaves: (idle since, page).
  int64_t evictions_ = 0;
  std::deque<uint64_t> evicted_order_;  // Keys of whole pages given up lately, oldest first.
  std::unordered_set<uint64_t> evicted_;
};

}  // namespace tessera::engine
