// SPDX-License-Identifier: Apache-2.0
#include "text/message_parser.h"

#include <gtest/gtest.h>

namespace tessera::text {
namespace {

using Kind = MessageEvent::Kind;

MessageFormat Format(bool separates) {
  MessageFormat format;
  format.tool_syntax = std::make_shared<const ToolSyntax>(DefaultToolSyntax());
  format.tools = std::make_shared<const std::vector<ToolSpec>>(std::vector<ToolSpec>{{"f", {}}});
  format.reasoning = *FindReasoningSyntax("think");
  format.separates_reasoning = separates;
  return format;
}

/// Events of a kind joined, calls by number.
std::vector<MessageEvent> Joined(const MessageFormat& format, std::string_view text, size_t piece) {
  MessageParser parser(format);
  std::vector<MessageEvent> joined;
  const auto take = [&joined](std::vector<MessageEvent> events) {
    for (MessageEvent& event : events) {
      if (event.kind != Kind::kCall && !joined.empty() && joined.back().kind == event.kind &&
          joined.back().call == event.call) {
        joined.back().text += event.text;
      } else {
        joined.push_back(std::move(event));
      }
    }
  };
  for (size_t at = 0; at < text.size(); at += piece) take(parser.Push(text.substr(at, piece)));
  take(parser.Finish());
  return joined;
}

constexpr std::string_view kAnswer =
    "<think>\nMaybe <tool_call>{\"name\": \"f\"}</tool_call>\n</think>\n\nI ask.\n"
    "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>";

TEST(MessageParser, CallsWithinThoughtsAreThoughts) {
  EXPECT_EQ(Joined(Format(true), kAnswer, 1000),
            (std::vector<MessageEvent>{
                {Kind::kReasoning, 0, "Maybe <tool_call>{\"name\": \"f\"}</tool_call>"},
                {Kind::kText, 0, "I ask."},
                {Kind::kCall, 0, "f"},
                {Kind::kArguments, 0, "{\"a\": 1}"}}));
}

TEST(MessageParser, ThoughtsThatAreNotSeparatedStayText) {
  EXPECT_EQ(Joined(Format(false), kAnswer, 1000),
            (std::vector<MessageEvent>{
                {Kind::kText, 0,
                 "<think>\nMaybe <tool_call>{\"name\": \"f\"}</tool_call>\n</think>\n\nI ask."},
                {Kind::kCall, 0, "f"},
                {Kind::kArguments, 0, "{\"a\": 1}"}}));
}

TEST(MessageParser, EveryPieceSizeGivesTheSame) {
  for (const bool separates : {false, true})
    for (size_t piece = 1; piece <= kAnswer.size(); ++piece)
      EXPECT_EQ(Joined(Format(separates), kAnswer, piece),
                Joined(Format(separates), kAnswer, kAnswer.size()));
}

TEST(MessageParser, APlainFormatIsSaidToBe) {
  EXPECT_TRUE(MessageFormat().IsPlain());
  MessageFormat thoughts;
  thoughts.reasoning = *FindReasoningSyntax("think");
  EXPECT_TRUE(thoughts.IsPlain());
  thoughts.separates_reasoning = true;
  EXPECT_FALSE(thoughts.IsPlain());
  EXPECT_FALSE(Format(false).IsPlain());
}

}  // namespace
}  // namespace tessera::text
