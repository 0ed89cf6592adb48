// SPDX-License-Identifier: Apache-2.0
#include "engine/ngram_draft.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace tessera::engine {
namespace {

using Tokens = std::vector<text::TokenId>;

TEST(NgramDraft, GoesOnAsBefore) {
  EXPECT_EQ(NgramDraft(Tokens{1, 2, 3, 4, 5, 9, 1, 2}, 2), (Tokens{3, 4}));
  EXPECT_EQ(NgramDraft(Tokens{1, 2, 3, 4, 5, 9, 1, 2}, 100), (Tokens{3, 4, 5, 9, 1, 2}));
}

TEST(NgramDraft, ALongerMatchIsBetterThanALaterOne) {
  EXPECT_EQ(NgramDraft(Tokens{7, 1, 2, 3, 0, 1, 2, 4, 7, 1, 2}, 1), Tokens{3});
  EXPECT_EQ(NgramDraft(Tokens{1, 2, 3, 0, 1, 2, 4, 7, 1, 2}, 1), Tokens{4})
      << "of equals the later";
}

TEST(NgramDraft, OneRecurringTokenIsNoReason) {
  EXPECT_TRUE(NgramDraft(Tokens{1, 2, 3, 4, 2}, 4).empty());
  EXPECT_TRUE(NgramDraft(Tokens{}, 4).empty());
  EXPECT_TRUE(NgramDraft(Tokens{1}, 4).empty());
  EXPECT_TRUE(NgramDraft(Tokens{1, 1}, 4).empty());
  EXPECT_TRUE(NgramDraft(Tokens{1, 2, 1, 2}, 0).empty());
}

TEST(NgramDraft, ALoopIsFollowed) {
  EXPECT_EQ(NgramDraft(Tokens{5, 5, 5}, 3), Tokens{5});
  EXPECT_EQ(NgramDraft(Tokens{1, 2, 1, 2, 1, 2}, 2), (Tokens{1, 2}));
}

TEST(NgramDraft, EqualsTheDefinition) {
  Random random(2);
  for (int round = 0; round < 4000; ++round) {
    Tokens tokens(random.Below(40));
    for (text::TokenId& token : tokens) token = static_cast<text::TokenId>(random.Below(3));
    const auto size = tokens.size();
    size_t best = 1, next = 0;
    for (size_t end = size < 2 ? 0 : size - 1; end-- > 0;) {  // Latest first.
      size_t length = 0;
      while (length <= end && length < 8 && tokens[end - length] == tokens[size - 1 - length])
        ++length;
      if (length > best) {
        best = length;
        next = end + 1;
      }
    }
    Tokens expected;
    if (best >= 2)
      expected.assign(tokens.begin() + static_cast<ptrdiff_t>(next),
                      tokens.begin() + static_cast<ptrdiff_t>(std::min(next + 4, size)));
    EXPECT_EQ(NgramDraft(tokens, 4), expected) << "round " << round;
  }
}

}  // namespace
}  // namespace tessera::engine
