// SPDX-License-Identifier: Apache-2.0
#include "engine/output_processor.h"

#include <gtest/gtest.h>

#include "support/fake_text.h"

namespace tessera::engine {
namespace {

constexpr TokenId kEnd = 256;

std::unique_ptr<text::Detokenizer> Detok() {
  static const auto tokenizer =
      std::make_shared<const testing::FakeTokenizer>(std::vector<std::string>{"<end>", "<other>"});
  return std::make_unique<testing::FakeDetokenizer>(tokenizer, /*skip_special=*/true);
}

struct Answer {
  std::string text;
  std::vector<std::string> pieces;
  std::vector<PlacedToken> tokens;
};

void Take(Result<OutputDelta> delta, Answer* answer) {
  ASSERT_TRUE(delta.has_value());
  answer->text += delta->text;
  if (!delta->text.empty()) answer->pieces.push_back(delta->text);
  for (PlacedToken& token : delta->tokens) answer->tokens.push_back(std::move(token));
}

/// Feeds bytes, then an ending token.
Answer Feed(OutputProcessor* processor, std::string_view bytes, bool with_end = true) {
  Answer answer;
  for (const char byte : bytes)
    Take(processor->OnToken({static_cast<unsigned char>(byte), false, {}}), &answer);
  if (with_end) Take(processor->OnToken({kEnd, true, {}}), &answer);
  Take(processor->OnEnd(), &answer);
  return answer;
}

TEST(OutputProcessor, NeverGivesHalfACharacter) {
  OutputProcessor processor(Detok(), {}, {});
  const std::string text = "a\u00fc\u65e5\U0001f600z";
  const Answer answer = Feed(&processor, text);
  EXPECT_EQ(answer.text, text);
  EXPECT_EQ(answer.pieces, (std::vector<std::string>{"a", "\u00fc", "\u65e5", "\U0001f600", "z"}));
  EXPECT_EQ(processor.token_count(), static_cast<int64_t>(text.size()) + 1);
  EXPECT_EQ(processor.end_token(), kEnd);
}

TEST(OutputProcessor, AnUnfinishedCharacterBecomesAReplacementAtTheEnd) {
  OutputProcessor processor(Detok(), {}, {});
  EXPECT_EQ(Feed(&processor, "ok\xE6\x97").text, "ok\uFFFD");
}

TEST(OutputProcessor, CutsAtAStopStringAndCountsItsTokens) {
  OutputProcessor processor(Detok(), {.stop_strings = {"STOP"}}, {});
  const Answer answer = Feed(&processor, "go STOP on");
  EXPECT_EQ(answer.text, "go ");
  EXPECT_TRUE(processor.stopped());
  EXPECT_EQ(processor.token_count(), 7);
  EXPECT_EQ(processor.end_token(), -1);
  ASSERT_EQ(answer.tokens.size(), 3u) << "tokens of the stop string are not in the answer";
}

TEST(OutputProcessor, MayKeepTheStopString) {
  OutputProcessor processor(Detok(), {.stop_strings = {"ST"}, .include_stop = true}, {});
  const Answer answer = Feed(&processor, "go STOP");
  EXPECT_EQ(answer.text, "go ST");
  EXPECT_EQ(answer.tokens.size(), 5u);
}

TEST(OutputProcessor, LooksForStopStringsOnlyAfterMinTokens) {
  OutputProcessor processor(Detok(), {.stop_strings = {"x"}, .min_tokens = 3}, {});
  EXPECT_EQ(Feed(&processor, "axbxc").text, "axb");
}

TEST(OutputProcessor, OffsetsAreCodePointsAndPiecesAreConsistent) {
  OutputProcessor processor(Detok(), {}, {});
  const Answer answer = Feed(&processor, "\u00fcb\u65e5c");
  std::vector<int64_t> offsets;
  for (const PlacedToken& token : answer.tokens) offsets.push_back(token.text_offset);
  EXPECT_EQ(offsets, (std::vector<int64_t>{0, 0, 1, 2, 2, 2, 3}));
}

TEST(OutputProcessor, TokensWaitWithTheirHeldBackText) {
  OutputProcessor processor(Detok(), {.stop_strings = {"ab"}}, {});
  Answer answer;
  Take(processor.OnToken({'a', false, {}}), &answer);
  EXPECT_TRUE(answer.tokens.empty());
  Take(processor.OnToken({'c', false, {}}), &answer);
  EXPECT_EQ(answer.text, "ac");
  EXPECT_EQ(answer.tokens.size(), 2u);
}

TEST(OutputProcessor, AHiddenSpecialTokenIsCountedAndPlaced) {
  OutputProcessor processor(Detok(), {}, {});
  Answer answer;
  Take(processor.OnToken({'a', false, {}}), &answer);
  Take(processor.OnToken({257, false, {}}), &answer);
  Take(processor.OnToken({'b', false, {}}), &answer);
  Take(processor.OnEnd(), &answer);
  EXPECT_EQ(answer.text, "ab");
  EXPECT_EQ(answer.tokens.size(), 3u);
  EXPECT_EQ(processor.token_count(), 3);
}

TEST(OutputProcessor, ThePromptsTailGivesNoText) {
  const std::vector<TokenId> tail{'p', 'q'};
  OutputProcessor processor(Detok(), {.stop_strings = {"qa"}}, tail);
  EXPECT_EQ(Feed(&processor, "abc").text, "abc") << "nor does it count for stop strings";
}

}  // namespace
}  // namespace tessera::engine
