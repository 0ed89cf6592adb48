// SPDX-License-Identifier: Apache-2.0
#include "runtime/kv_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace tessera::runtime {
namespace {

using ::testing::HasSubstr;

constexpr KvShape kShape{.max_seq_len = 100, .page_tokens = 32, .page_bytes = 1000};  // 4 pages

int64_t Pages(const KvWish& wish, uint64_t available = 0) {
  return KvPages(wish, kShape, available).value_or(-1);
}

TEST(KvBudget, TokensAreRoundedUpToPages) {
  EXPECT_EQ(Pages({.tokens = 32}), 1);
  EXPECT_EQ(Pages({.tokens = 33}), 2);
  EXPECT_EQ(Pages({.tokens = 1, .bytes = 9999}), 1);
}

TEST(KvBudget, BytesAreRoundedDownToPagesAndMustHoldOne) {
  EXPECT_EQ(Pages({.bytes = 1000}), 1);
  EXPECT_EQ(Pages({.bytes = 1999}), 1);
  EXPECT_EQ(Pages({.bytes = 2000}), 2);
  const auto pages = KvPages({.bytes = 999}, kShape, 1 << 30);
  ASSERT_FALSE(pages.has_value());
  EXPECT_EQ(pages.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(pages.error().message(), HasSubstr("999 bytes"));
  EXPECT_THAT(pages.error().message(), HasSubstr("one page of 32 tokens needs 1000"));
}

TEST(KvBudget, ByDefaultOneFullSequenceWhateverTheMemory) {
  EXPECT_EQ(Pages({}), 4);
  EXPECT_EQ(Pages({}, 1 << 30), 4);
}

TEST(KvBudget, SeveralFullSequencesTakeAtMostAQuarterOfTheMemory) {
  EXPECT_EQ(Pages({.max_sequences = 8}, 0), 4);
  EXPECT_EQ(Pages({.max_sequences = 8}, 4 * 7999), 4);
  EXPECT_EQ(Pages({.max_sequences = 8}, 4 * 8000), 8);
  EXPECT_EQ(Pages({.max_sequences = 8}, 4 * 31999), 28);
  EXPECT_EQ(Pages({.max_sequences = 8}, 4 * 32000), 32);
  EXPECT_EQ(Pages({.max_sequences = 8}, 1 << 30), 32);
}

TEST(KvBudget, WhatIsAskedForMustFitIntoMemory) {
  const auto check = [](const KvWish& wish, int64_t pages, uint64_t available) {
    return CheckKvFits(wish, pages, kShape, available);
  };
  EXPECT_TRUE(check({.bytes = 4000}, 4, 4001).ok());
  EXPECT_TRUE(check({.bytes = 4000}, 4, 4000).ok());
  EXPECT_EQ(check({.bytes = 4000}, 4, 3999).code(), Code::kResourceExhausted);
  EXPECT_THAT(check({.bytes = 4000}, 4, 3999).message(),
              HasSubstr("need 4000 bytes of memory, 3999 are available"));
  EXPECT_FALSE(check({.tokens = 128}, 4, 3999).ok());
  EXPECT_FALSE(check({.bytes = 1}, std::numeric_limits<int64_t>::max(), 1 << 30).ok());
  EXPECT_TRUE(check({}, 4, 0).ok());  // A default only reserves addresses.
}

}  // namespace
}  // namespace tessera::runtime
