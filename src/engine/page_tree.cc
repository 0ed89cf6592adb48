// SPDX-License-Identifier: Apache-2.0
#include "engine/page_tree.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tessera::engine {
namespace {

int64_t CommonTokens(std::span<const TokenId> a, std::span<const TokenId> b) {
  return std::ranges::mismatch(a, b).in1 - a.begin();
}

}  // namespace

uint64_t PageKey(uint64_t parent, std::span<const TokenId> tokens) {
  // FNV-1a over the ids with a finishing shift; collisions cost a wait of one step at most.
  uint64_t key = parent ^ 0xCBF29CE484222325;
  for (const TokenId token : tokens) {
    key = (key ^ static_cast<uint64_t>(static_cast<uint32_t>(token))) * 0x100000001B3;
    key ^= key >> 29;
  }
  return key;
}

bool PageTree::ByTokens::operator()(PageId a, PageId b) const {
  return (*this)(a, std::span((*nodes)[static_cast<size_t>(b)].tokens));
}
bool PageTree::ByTokens::operator()(PageId a, std::span<const TokenId> b) const {
  return std::ranges::lexicographical_compare((*nodes)[static_cast<size_t>(a)].tokens, b);
}
bool PageTree::ByTokens::operator()(std::span<const TokenId> a, PageId b) const {
  return std::ranges::lexicographical_compare(a, (*nodes)[static_cast<size_t>(b)].tokens);
}

PageTree::PageTree(int64_t page_count, int64_t page_tokens)
    : page_tokens_(page_tokens),
      nodes_(static_cast<size_t>(page_count), Node(ByTokens{&nodes_})),
      roots_(ByTokens{&nodes_}) {
  TESSERA_CHECK(page_tokens > 0);
}

const PageTree::Node& PageTree::NodeOf(PageId page) const {
  TESSERA_CHECK(page >= 0 && static_cast<size_t>(page) < nodes_.size());
  return nodes_[static_cast<size_t>(page)];
}
PageTree::Node& PageTree::NodeOf(PageId page) {
  return const_cast<Node&>(std::as_const(*this).NodeOf(page));
}
const PageTree::Children& PageTree::ChildrenOf(PageId page) const {
  return page == kRoot ? roots_ : NodeOf(page).children;
}
PageTree::Children& PageTree::ChildrenOf(PageId page) {
  return page == kRoot ? roots_ : NodeOf(page).children;
}

PageTree::Child PageTree::BestChild(PageId parent, std::span<const TokenId> tokens) const {
  const Children& children = ChildrenOf(parent);
  // In lexicographic order the longest common beginning is with a neighbour of the place.
  const auto after = children.lower_bound(tokens);
  Child best;
  const auto consider = [&](PageId page) {
    const int64_t common = CommonTokens(tokens, NodeOf(page).tokens);
    if (common > best.common) best = {page, common};
  };
  if (after != children.end()) consider(*after);
  if (after != children.begin()) consider(*std::prev(after));
  return best;
}

void PageTree::Add(PageId parent, std::span<const TokenId> tokens, PageId page) {
  TESSERA_CHECK(!tokens.empty() && static_cast<int64_t>(tokens.size()) <= page_tokens_);
  TESSERA_CHECK(parent == kRoot || IsWhole(parent));
  TESSERA_CHECK(!Contains(page));
  Node& node = NodeOf(page);
  TESSERA_CHECK(node.children.empty());
  node.parent = parent;
  node.key = PageKey(KeyOf(parent), tokens);
  node.tokens.assign(tokens.begin(), tokens.end());
  TESSERA_CHECK(ChildrenOf(parent).insert(page).second);
  ++size_;
}

void PageTree::Remove(PageId page) {
  TESSERA_CHECK(Contains(page) && IsLeaf(page));
  Node& node = NodeOf(page);
  TESSERA_CHECK(ChildrenOf(node.parent).erase(page) == 1);
  node.parent = kNone;
  node.tokens.clear();
  --size_;
}

void PageTree::CheckIntegrity() const {
  int64_t count = 0;
  const auto check = [&](PageId parent) {
    const Children& children = ChildrenOf(parent);
    const Node* previous = nullptr;
    for (const PageId page : children) {
      const Node& node = NodeOf(page);
      TESSERA_CHECK(!node.tokens.empty() && node.parent == parent);
      TESSERA_CHECK(node.key == PageKey(KeyOf(parent), node.tokens));
      // Sorted: a beginning would stand right before what it begins.
      if (previous != nullptr)
        TESSERA_CHECK(CommonTokens(previous->tokens, node.tokens) <
                      static_cast<int64_t>(previous->tokens.size()));
      previous = &node;
      ++count;
    }
  };
  check(kRoot);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const auto page = static_cast<PageId>(i);
    if (nodes_[i].children.empty()) continue;
    TESSERA_CHECK(Contains(page) && IsWhole(page));
    check(page);
  }
  TESSERA_CHECK(count == size_);
}

}  // namespace tessera::engine
