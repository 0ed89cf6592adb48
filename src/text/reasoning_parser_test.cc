// SPDX-License-Identifier: Apache-2.0
#include "text/reasoning_parser.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace tessera::text {
namespace {

using Delta = ReasoningParser::Delta;

Delta Parse(std::string_view text, std::string_view name = "think", bool is_open = false) {
  ReasoningParser parser(*FindReasoningSyntax(name), {.is_open = is_open});
  Delta delta;
  parser.Push(text, &delta);
  parser.Finish(&delta);
  return delta;
}

TEST(ReasoningParser, SplitsThoughtsFromText) {
  const struct {
    const char* text;
    const char* reasoning;
    const char* rest;
  } cases[] = {
      {"<think>\nHm. \n a < b\n</think>\n\nYes.\n", "Hm. \n a < b", "Yes.\n"},
      {"  <think>x</think>y", "x", "y"},
      {"<think></think>y", "", "y"},
      {"<think>only", "only", ""},
      {"<think>half </thi", "half </thi", ""},
      {"no thoughts", "", "no thoughts"},
      {" <thin", "", " <thin"},
      {"late <think>x</think>", "", "late <think>x</think>"},
      {"<think>a</think>b</think>c", "a", "b</think>c"},
      {"<think> <think>a</think>b", "<think>a", "b"},
      {"", "", ""},
  };
  for (const auto& [text, reasoning, rest] : cases) {
    const Delta delta = Parse(text);
    EXPECT_EQ(delta.reasoning, reasoning) << text;
    EXPECT_EQ(delta.text, rest) << text;
  }
}

TEST(ReasoningParser, APromptMayHaveBegunTheThoughts) {
  EXPECT_TRUE(StartsOpen(*FindReasoningSyntax("think"), "<|assistant|><think>\n"));
  EXPECT_FALSE(StartsOpen(*FindReasoningSyntax("think"), "<think>\n</think>\n"));
  EXPECT_TRUE(StartsClosed(*FindReasoningSyntax("think"), "<think>\n</think>\n"));
  EXPECT_FALSE(StartsClosed(*FindReasoningSyntax("think"), "<|assistant|>\n"));
  const Delta open = Parse("I see.</think>Yes.", "think", true);
  EXPECT_EQ(open.reasoning, "I see.");
  EXPECT_EQ(open.text, "Yes.");
  // A model that always thinks, and may or may not write the mark.
  EXPECT_EQ(Parse("a</think>b", "deepseek_r1").reasoning, "a");
  EXPECT_EQ(Parse("<think>a</think>b", "deepseek_r1").reasoning, "a");
  EXPECT_EQ(Parse("<think><think>a</think>b", "deepseek_r1").reasoning, "<think>a");
  EXPECT_EQ(Parse("<thin a", "deepseek_r1").reasoning, "<thin a");
}

TEST(ReasoningParser, TheTemplateSaysWhichMarks) {
  EXPECT_EQ(ReasoningSyntaxOf("x {{ content.split('</think>')[-1] }}")->name, "think");
  EXPECT_EQ(ReasoningSyntaxOf("[/THINK]")->name, "mistral");
  EXPECT_FALSE(ReasoningSyntaxOf("{{ content }}").has_value());
}

TEST(ReasoningParser, EverySplitGivesTheSame) {
  const std::string_view pieces[] = {"<think>", "</think>", "<", "think>",  "</",      " ",
                                     "\n",      "a",        "Ü", "[THINK]", "[/THINK]"};
  Random random(9);
  size_t with_reasoning = 0;
  for (const std::string_view name : ReasoningSyntaxNames()) {
    for (int round = 0; round < 300; ++round) {
      std::string text = random.Below(2) == 0 ? FindReasoningSyntax(name)->begin : "";
      for (uint64_t n = random.Below(9); n > 0; --n)
        text += pieces[random.Below(std::size(pieces))];
      const bool is_open = random.Below(3) == 0;
      const Delta whole = Parse(text, name, is_open);
      with_reasoning += whole.reasoning.empty() ? 0 : 1;
      for (size_t cut = 0; cut <= text.size(); ++cut) {
        ReasoningParser parser(*FindReasoningSyntax(name), {.is_open = is_open});
        Delta delta;
        parser.Push(std::string_view(text).substr(0, cut), &delta);
        parser.Push(std::string_view(text).substr(cut), &delta);
        parser.Finish(&delta);
        ASSERT_EQ(delta.reasoning, whole.reasoning) << text << " cut at " << cut;
        ASSERT_EQ(delta.text, whole.text) << text << " cut at " << cut;
      }
      ReasoningParser raw(*FindReasoningSyntax(name), {.is_open = is_open, .keeps_marks = true});
      Delta kept;
      raw.Push(text, &kept);
      raw.Finish(&kept);
      ASSERT_EQ(kept.reasoning + kept.text, text);
    }
  }
  EXPECT_GT(with_reasoning, 300u);
}

}  // namespace
}  // namespace tessera::text
