// SPDX-License-Identifier: Apache-2.0
#include "server/reasoning_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "support/fake_text.h"

namespace tessera::server {
namespace {

using text::TokenId;

constexpr size_t kWords = 9;

std::shared_ptr<engine::TokenConstraint> Budget(std::vector<std::string> specials, int64_t tokens,
                                                bool starts = false) {
  const auto tokenizer = std::make_shared<const testing::FakeTokenizer>(std::move(specials));
  const text::ReasoningSyntax& syntax = *text::FindReasoningSyntax("think");
  return std::make_shared<ReasoningBudget>(
      nullptr, tokenizer, syntax,
      ReasoningBudget::Options{
          .starts_reasoning = starts,
          .budget_tokens = tokens,
          .end_ids =
              tokenizer->Encode(syntax.end, {.add_special = false, .parse_special = true}).value(),
          .eos_ids = {256}});
}

int Allowed(engine::TokenConstraint& constraint, bool* may_end) {
  std::vector<uint32_t> mask(kWords);
  const auto next = constraint.ComputeMask(mask);
  EXPECT_TRUE(next.has_value());
  *may_end = next->may_end;
  int count = 0;
  for (const uint32_t word : mask) count += std::popcount(word);
  return count;
}

bool Allows(engine::TokenConstraint& constraint, TokenId id) {
  std::vector<uint32_t> mask(kWords);
  EXPECT_TRUE(constraint.ComputeMask(mask).has_value());
  return (mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0;
}

void Say(engine::TokenConstraint& constraint, std::vector<TokenId> ids) {
  for (const TokenId id : ids) {
    EXPECT_TRUE(Allows(constraint, id)) << id;
    EXPECT_TRUE(constraint.Accept(id).ok());
  }
}

TEST(ReasoningBudget, EndsThoughtsAfterSoManyTokens) {
  constexpr TokenId kBegin = 257, kEnd = 258;
  const auto constraint = Budget({"<eos>", "<think>", "</think>"}, 2);
  bool may_end = false;
  EXPECT_EQ(Allowed(*constraint, &may_end), 258)
      << "all but the end of an answer, which the engine adds";
  EXPECT_TRUE(may_end);
  Say(*constraint, {kBegin, 'a', 'b'});
  EXPECT_EQ(Allowed(*constraint, &may_end), 1);
  EXPECT_FALSE(may_end);
  Say(*constraint, {kEnd});
  EXPECT_EQ(Allowed(*constraint, &may_end), 258);
  EXPECT_TRUE(may_end);
  Say(*constraint, {'c', 'd', 'e', 'f'});
}

TEST(ReasoningBudget, LeavesAloneWhatStaysWithinIt) {
  const auto constraint = Budget({"<eos>", "<think>", "</think>"}, 2);
  Say(*constraint, {257, 'a', 258, 'b', 'c', 'd'});
  const auto without = Budget({"<eos>", "<think>", "</think>"}, 0);
  Say(*without, {'a', 'b', 'c', 257, 'd'});
}

TEST(ReasoningBudget, AnEndMarkMayHaveSeveralTokens) {
  const auto constraint = Budget({"<eos>"}, 1, /*starts=*/true);
  Say(*constraint, {'a'});
  bool may_end = true;
  for (const char c : std::string_view("</think>")) {
    EXPECT_EQ(Allowed(*constraint, &may_end), 1);
    Say(*constraint, {c});
  }
  EXPECT_GT(Allowed(*constraint, &may_end), 200);
}

TEST(ReasoningBudget, ZeroMeansNoThoughts) {
  const auto constraint = Budget({"<eos>", "<think>", "</think>"}, 0, /*starts=*/true);
  EXPECT_FALSE(Allows(*constraint, 'a'));
  Say(*constraint, {258, 'a'});
}

}  // namespace
}  // namespace tessera::server
