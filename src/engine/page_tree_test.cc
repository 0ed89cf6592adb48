// SPDX-License-Identifier: Apache-2.0
#include "engine/page_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.h"

namespace tessera::engine {
namespace {

using Tokens = std::vector<TokenId>;
constexpr PageId kRoot = PageTree::kRoot;

TEST(PageTree, FindsTheChildThatSharesMost) {
  PageTree tree(8, 4);
  EXPECT_EQ(tree.BestChild(kRoot, Tokens{1, 2}).page, PageTree::kNone);
  tree.Add(kRoot, Tokens{1, 2, 3, 4}, 0);
  tree.Add(kRoot, Tokens{1, 2, 9, 9}, 1);
  tree.Add(kRoot, Tokens{5, 6}, 2);
  tree.Add(0, Tokens{7, 7, 7, 7}, 3);
  tree.CheckIntegrity();
  const auto best = [&](PageId parent, const Tokens& tokens) {
    const PageTree::Child child = tree.BestChild(parent, tokens);
    return std::pair(child.page, child.common);
  };
  EXPECT_EQ(best(kRoot, {1, 2, 3, 4}), std::pair(PageId{0}, int64_t{4}));
  EXPECT_EQ(best(kRoot, {1, 2, 3, 9}), std::pair(PageId{0}, int64_t{3}));
  EXPECT_EQ(best(kRoot, {1, 2, 9, 8}), std::pair(PageId{1}, int64_t{3}));
  EXPECT_EQ(best(kRoot, {5, 6, 1, 1}), std::pair(PageId{2}, int64_t{2}));
  EXPECT_EQ(best(kRoot, {4}), std::pair(PageTree::kNone, int64_t{0}));
  EXPECT_EQ(best(kRoot, {7, 7}), std::pair(PageTree::kNone, int64_t{0})) << "another parent's";
  EXPECT_EQ(best(0, {7, 7}), std::pair(PageId{3}, int64_t{2}));
  EXPECT_EQ(best(kRoot, {}), std::pair(PageTree::kNone, int64_t{0}));
}

TEST(PageTree, AKeyNamesAllTokensUpToThePage) {
  PageTree tree(8, 2);
  tree.Add(kRoot, Tokens{1, 2}, 0);
  tree.Add(kRoot, Tokens{2, 1}, 1);
  tree.Add(0, Tokens{5, 5}, 2);
  tree.Add(1, Tokens{5, 5}, 3);
  EXPECT_NE(tree.KeyOf(0), tree.KeyOf(1));
  EXPECT_NE(tree.KeyOf(2), tree.KeyOf(3)) << "same page, another context";
  EXPECT_EQ(tree.KeyOf(2), PageKey(PageKey(0, Tokens{1, 2}), Tokens{5, 5}));
}

TEST(PageTreeDeathTest, OnlyLeavesGoAndPartialPagesHaveNoChildren) {
  PageTree tree(4, 2);
  tree.Add(kRoot, Tokens{1, 2}, 0);
  tree.Add(0, Tokens{3}, 1);
  EXPECT_DEATH(tree.Remove(0), "check failed");
  EXPECT_DEATH(tree.Add(1, Tokens{4}, 2), "check failed");
  EXPECT_DEATH(tree.Add(kRoot, Tokens{4}, 1), "check failed") << "a page is one node";
  tree.Remove(1);
  tree.Remove(0);
  EXPECT_EQ(tree.size(), 0);
}

TEST(PageTree, AgreesWithALinearSearchUnderRandomUse) {
  Random random(11);
  constexpr int64_t kPage = 3;
  PageTree tree(40, kPage);
  std::map<PageId, std::pair<PageId, Tokens>> nodes;  // page -> parent, tokens
  const auto draw = [&](size_t length) {
    Tokens tokens(length);
    for (TokenId& token : tokens) token = static_cast<TokenId>(random.Below(3));
    return tokens;
  };
  int64_t deepest = 0;
  for (int i = 0; i < 4000; ++i) {
    const auto page = static_cast<PageId>(random.Below(40));
    auto parent = static_cast<PageId>(random.Below(41)) - 1;
    if (parent != kRoot && (!tree.Contains(parent) || !tree.IsWhole(parent))) parent = kRoot;
    const Tokens tokens = draw(1 + random.Below(kPage));
    int64_t most = 0;
    bool may_add = !tree.Contains(page);
    for (const auto& [other, node] : nodes) {
      if (node.first != parent) continue;
      const auto common = std::ranges::mismatch(tokens, node.second).in1 - tokens.begin();
      most = std::max<int64_t>(most, common);
      may_add &= common < std::min(std::ssize(tokens), std::ssize(node.second));
    }
    const PageTree::Child best = tree.BestChild(parent, tokens);
    ASSERT_EQ(best.common, most);
    if (most > 0) {
      ASSERT_EQ(nodes.at(best.page).first, parent);
    }
    if (may_add && parent != page) {
      tree.Add(parent, tokens, page);
      nodes[page] = {parent, tokens};
      int64_t depth = 0;
      for (PageId at = page; at != kRoot; at = tree.ParentOf(at)) ++depth;
      deepest = std::max(deepest, depth);
    } else if (tree.Contains(page) && tree.IsLeaf(page) && random.Below(2) == 0) {
      tree.Remove(page);
      nodes.erase(page);
    }
    tree.CheckIntegrity();
    ASSERT_EQ(tree.size(), std::ssize(nodes));
  }
  EXPECT_GT(deepest, 3);
}

}  // namespace
}  // namespace tessera::engine
