// SPDX-License-Identifier: Apache-2.0
#include "certify/certify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/utf8.h"
#include "certify/text.h"

namespace tessera::certify {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBillion = 1'000'000'000;

TEST(Certify, LargeModelsReadLessOfTheText) {
  EXPECT_EQ(TokensToScore(600, kBillion / 10, 8192), kMaxTokens);
  EXPECT_EQ(TokensToScore(600, kBillion, 8192), kMaxMultiplyAdds / kBillion);
  EXPECT_EQ(TokensToScore(600, 405 * kBillion, 8192), kMinTokens);
  EXPECT_EQ(TokensToScore(40, kBillion, 8192), 40);
  EXPECT_EQ(TokensToScore(600, kBillion / 10, 64), 64);
  EXPECT_EQ(TokensToScore(600, 0, 8192), kMaxTokens);
}

TEST(Certify, TheOriginalMayTakeHalfOfMemoryAndLeavesAGigabyteOfDisk) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  EXPECT_EQ(WhyNotOriginal(4 * kGiB, 8 * kGiB, 5 * kGiB), "");
  EXPECT_THAT(WhyNotOriginal(4 * kGiB + 1, 8 * kGiB, 50 * kGiB), HasSubstr("of memory"));
  EXPECT_THAT(WhyNotOriginal(4 * kGiB, 8 * kGiB, 5 * kGiB - 1), HasSubstr("of disk"));
  EXPECT_THAT(WhyNotOriginal(1, 8 * kGiB, 0), HasSubstr("of disk"));
}

TEST(Certify, TheTextIsLongEnoughForEveryTokenizer) {
  // A token of the usual vocabularies has about four bytes of English.
  EXPECT_GT(kText.size(), 4 * kMaxTokens);
  EXPECT_TRUE(IsUtf8(kText));
}

}  // namespace
}  // namespace tessera::certify
