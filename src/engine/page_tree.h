// SPDX-License-Identifier: Apache-2.0
//
// PageTree: a radix tree over the contents of KV pages. A node is one page; its edge is the tokens
// whose KV the page holds, and the path from the root to it is all tokens before them. KV depends
// on the whole context, so the same path means the same bytes. A node is named by its page: a page
// is at most one node.
//
// A node with fewer than page_tokens tokens is a partial page: a leaf that is copied from, never
// shared. The tree knows nothing of users, age or eviction: prefix_cache.h. Engine thread only.
//
// Invariants (CheckIntegrity):
//   1. Every node but the root has a parent that is a whole page or the root, and stands among its
//      children.   2. No child's tokens are a beginning of another child's.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "engine/request.h"
#include "runtime/session.h"

namespace tessera::engine {

using runtime::PageId;

/// Hash of a page's contents and all before it: `parent` is the key of the page before, 0 of none.
/// For comparing without looking; equality of pages is decided by their tokens.
uint64_t PageKey(uint64_t parent, std::span<const TokenId> tokens);

class PageTree {
 public:
  static constexpr PageId kRoot = -1;
  static constexpr PageId kNone = -2;

  PageTree(int64_t page_count, int64_t page_tokens);
  PageTree(const PageTree&) = delete;
  PageTree& operator=(const PageTree&) = delete;

  struct Child {
    PageId page = kNone;
    int64_t common = 0;  // Leading tokens that it shares.
  };
  /// The child of `parent` that shares most leading tokens with `tokens`, at least one. O(log n).
  Child BestChild(PageId parent, std::span<const TokenId> tokens) const;

  /// `page` must not be a node yet. Requires: 1 to page_tokens tokens, a whole `parent`, and no
  /// child of it that begins with `tokens` or that `tokens` begin with.
  void Add(PageId parent, std::span<const TokenId> tokens, PageId page);
  /// Requires a leaf.
  void Remove(PageId page);

  bool Contains(PageId page) const { return !NodeOf(page).tokens.empty(); }
  bool IsLeaf(PageId page) const { return NodeOf(page).children.empty(); }
  bool IsWhole(PageId page) const { return TokensOf(page) == page_tokens_; }
  int64_t TokensOf(PageId page) const { return static_cast<int64_t>(NodeOf(page).tokens.size()); }
  PageId ParentOf(PageId page) const { return NodeOf(page).parent; }
  /// Of a page or the root.
  uint64_t KeyOf(PageId page) const { return page == kRoot ? 0 : NodeOf(page).key; }
  int64_t size() const { return size_; }
  void CheckIntegrity() const;

 private:
  struct Node;
  struct ByTokens {
    using is_transparent = void;
    const std::vector<Node>* nodes;
    bool operator()(PageId a, PageId b) const;
    bool operator()(PageId a, std::span<const TokenId> b) const;
    bool operator()(std::span<const TokenId> a, PageId b) const;
  };
  /// In order of their tokens, so that those which share most stand beside each other.
  using Children = std::set<PageId, ByTokens>;
  struct Node {
    explicit Node(ByTokens order) : children(order) {}
    PageId parent = kNone;
    uint64_t key = 0;
    std::vector<TokenId> tokens;  // Empty: not in the tree.
    Children children;
  };

  const Node& NodeOf(PageId page) const;
  Node& NodeOf(PageId page);
  const Children& ChildrenOf(PageId page) const;
  Children& ChildrenOf(PageId page);

  const int64_t page_tokens_;
  std::vector<Node> nodes_;  // [page_count]
  Children roots_;           // Children of the root.
  int64_t size_ = 0;
};

}  // namespace tessera::engine
