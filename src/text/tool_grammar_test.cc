// SPDX-License-Identifier: Apache-2.0
//
// Answers drawn at random under the grammars of tool calls: whatever is drawn, the parser of the
// same syntax reads calls whose arguments obey the schemas.
#include "text/tool_grammar.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "support/fake_text.h"
#include "text/grammar.h"
#include "text/message_parser.h"

namespace tessera::text {
namespace {

using testing::FakeTokenizer;

constexpr TokenId kEnd = 256;

/// Every byte, and the marks of two syntaxes as special tokens.
const std::shared_ptr<const FakeTokenizer>& TheTokenizer() {
  static const auto tokenizer = std::make_shared<const FakeTokenizer>(std::vector<std::string>{
      "<end>", "[TOOL_CALLS]", "<|tool_calls_section_begin|>", "<|tool_call_begin|>",
      "<|tool_call_argument_begin|>", "<|tool_call_end|>", "<|tool_calls_section_end|>", "<think>",
      "</think>"});
  return tokenizer;
}

std::unique_ptr<Constraint> Start(const std::string& lark) {
  static const auto vocabulary =
      ConstraintVocabulary::Make(*TheTokenizer(), std::span(&kEnd, 1)).value();
  const auto grammar = Grammar::Compile(vocabulary, GrammarKind::kLarkParts, lark);
  EXPECT_TRUE(grammar.has_value()) << grammar.error().ToString() << "\n" << lark;
  return grammar.has_value() ? (*grammar)->Start().value() : nullptr;
}

const std::vector<ToolSchema>& Tools() {
  static const std::vector<ToolSchema> tools = {
      {"get_weather", json::Parse(R"({"type":"object","properties":{
           "city":{"type":"string","minLength":1,"maxLength":4},
           "unit":{"enum":["C","F"]},
           "days":{"type":"array","items":{"type":"integer","minimum":0,"maximum":9},"maxItems":3}},
           "required":["city","unit"],"additionalProperties":false})",
                                  {}, "schema")
                          .value()},
      {"add", json::Parse(R"({"type":"object","properties":{
           "a":{"type":"integer","minimum":0,"maximum":99},
           "b":{"type":"integer","minimum":0,"maximum":99}},
           "required":["a","b"],"additionalProperties":false})",
                          {}, "schema")
                  .value()}};
  return tools;
}

std::shared_ptr<const std::vector<ToolSpec>> Specs() {
  return std::make_shared<std::vector<ToolSpec>>(
      std::vector<ToolSpec>{{"get_weather", {"city", "unit"}}, {"add", {}}});
}

/// What may be in the mask, by id.
std::vector<TokenId> Allowed(std::span<const uint32_t> mask) {
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < TheTokenizer()->vocab_size(); ++id)
    if ((mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0) ids.push_back(id);
  return ids;
}

/// Draws an answer: first the tokens of `begin`, as far as given, then at random, printable bytes
/// where there is a choice, until the end. Empty: it did not end.
std::string Draw(Constraint& constraint, std::span<const TokenId> begin, Random* random) {
  std::vector<uint32_t> mask(9);
  std::vector<TokenId> ids;
  for (size_t step = 0; step < 2000; ++step) {
    EXPECT_TRUE(constraint.ComputeMask(mask).ok());
    std::vector<TokenId> allowed = Allowed(mask);
    EXPECT_FALSE(allowed.empty());
    if (allowed.empty()) return "";
    TokenId next = allowed[random->Below(allowed.size())];
    if (step < begin.size()) {
      next = begin[step];
      EXPECT_NE(std::ranges::find(allowed, next), allowed.end()) << "step " << step;
    } else if (std::ranges::find(allowed, kEnd) != allowed.end() && random->Below(4) == 0) {
      next = kEnd;
    } else {
      for (int tries = 0; tries < 20 && (next < 32 || next > 126); ++tries)
        next = allowed[random->Below(allowed.size())];
    }
    EXPECT_TRUE(constraint.Commit(next).ok());
    if (next == kEnd || constraint.is_finished())
      return TheTokenizer()->Decode(ids, /*skip_special=*/false).value();
    ids.push_back(next);
  }
  ADD_FAILURE() << "no end: " << TheTokenizer()->Decode(ids, false).value();
  return "";
}

struct Read {
  std::string text;
  std::string reasoning;
  std::vector<std::pair<std::string, std::string>> calls;
};

Read ReadAnswer(const ToolSyntax& syntax, std::string_view answer, bool thinks = false,
                bool starts = false) {
  MessageFormat format;
  format.tool_syntax = std::make_shared<const ToolSyntax>(syntax);
  format.tools = Specs();
  format.tool_options.gives_partial_calls = true;
  if (thinks) {
    format.reasoning = *FindReasoningSyntax("think");
    format.separates_reasoning = true;
    format.starts_reasoning = starts;
  }
  MessageParser parser(format);
  std::vector<MessageEvent> events = parser.Push(answer);
  for (MessageEvent& event : parser.Finish()) events.push_back(std::move(event));
  Read read;
  for (const MessageEvent& event : events) {
    switch (event.kind) {
      case MessageEvent::Kind::kText:
        read.text += event.text;
        break;
      case MessageEvent::Kind::kReasoning:
        read.reasoning += event.text;
        break;
      case MessageEvent::Kind::kCall:
        read.calls.emplace_back(event.text, "");
        break;
      case MessageEvent::Kind::kArguments:
        read.calls[event.call].second += event.text;
        break;
    }
  }
  EXPECT_EQ(parser.problem(), "") << answer;
  EXPECT_FALSE(parser.has_broken_call()) << answer;
  return read;
}

void ExpectInSchema(const std::string& name, const std::string& arguments) {
  const auto value = json::Parse(arguments, {}, "arguments");
  ASSERT_TRUE(value.has_value()) << arguments;
  const json::Object& object = value->as_object();
  if (name == "add") {
    EXPECT_EQ(object.size(), 2u) << arguments;
    for (const char* key : {"a", "b"}) {
      ASSERT_TRUE(object.contains(key) && object.at(key).is_int64()) << arguments;
      EXPECT_TRUE(object.at(key).as_int64() >= 0 && object.at(key).as_int64() <= 99);
    }
    return;
  }
  ASSERT_TRUE(object.contains("city") && object.contains("unit")) << arguments;
  ASSERT_TRUE(object.at("city").is_string()) << arguments;
  EXPECT_FALSE(object.at("city").as_string().empty()) << arguments;
  EXPECT_TRUE(object.at("unit") == "C" || object.at("unit") == "F") << arguments;
  if (object.contains("days")) {
    EXPECT_LE(object.at("days").as_array().size(), 3u);
  }
}

std::string Lark(const ToolSyntax& syntax, const ToolGrammarOptions& options) {
  const auto grammar = ToolGrammar(syntax, Tools(), options, *TheTokenizer());
  EXPECT_TRUE(grammar.has_value() && grammar->has_value());
  return grammar.has_value() ? grammar->value_or("") : "";
}

std::vector<TokenId> Tokens(std::string_view text) {
  return TheTokenizer()->Encode(text, {.add_special = false, .parse_special = true}).value();
}

TEST(ToolGrammar, ANeededCallIsMadeInEverySyntax) {
  Random random(1);
  for (const std::string_view name : ToolSyntaxNames()) {
    SCOPED_TRACE(name);
    const ToolSyntax& syntax = *FindToolSyntax(name);
    std::set<std::string> called;
    for (const bool several : {false, true}) {
      const std::string lark = Lark(syntax, {.needs_call = true, .several = several});
      for (int round = 0; round < 6; ++round) {
        const auto constraint = Start(lark);
        ASSERT_NE(constraint, nullptr);
        const std::string answer = Draw(*constraint, {}, &random);
        const Read read = ReadAnswer(syntax, answer);
        EXPECT_EQ(read.text, "") << answer;
        EXPECT_GE(read.calls.size(), 1u) << answer;
        if (!several) {
          EXPECT_EQ(read.calls.size(), 1u) << answer;
        }
        for (const auto& [function, arguments] : read.calls) {
          ExpectInSchema(function, arguments);
          called.insert(function);
        }
      }
    }
    EXPECT_EQ(called.size(), 2u);
  }
}

TEST(ToolGrammar, FreeTextMayComeBeforeACall) {
  Random random(2);
  for (const std::string_view name : ToolSyntaxNames()) {
    SCOPED_TRACE(name);
    const ToolSyntax& syntax = *FindToolSyntax(name);
    const auto grammar = ToolGrammar(syntax, Tools(), {.several = true}, *TheTokenizer());
    ASSERT_TRUE(grammar.has_value());
    if (syntax.Marker().empty()) {
      EXPECT_FALSE(grammar->has_value());
      continue;
    }
    const auto constraint = Start(**grammar);
    ASSERT_NE(constraint, nullptr);
    const std::string answer = Draw(*constraint, Tokens("Hm. " + syntax.Marker()), &random);
    const Read read = ReadAnswer(syntax, answer);
    EXPECT_EQ(read.text, "Hm.") << answer;
    ASSERT_GE(read.calls.size(), 1u) << answer;
    for (const auto& [function, arguments] : read.calls) ExpectInSchema(function, arguments);
    // Or none.
    const auto text = Start(**grammar);
    std::vector<uint32_t> mask(9);
    ASSERT_TRUE(text->ComputeMask(mask).ok());
    EXPECT_NE(mask[kEnd / 32] >> (kEnd % 32) & 1, 0u) << "an answer may be empty";
    std::vector<TokenId> plain = Tokens("No < call, é.\n");
    plain.push_back(kEnd);
    EXPECT_EQ(Draw(*text, plain, &random), "No < call, é.\n");
  }
}

TEST(ToolGrammar, ThoughtsComeFirst) {
  Random random(3);
  const ToolSyntax& syntax = DefaultToolSyntax();
  ToolGrammarOptions options{.needs_call = true, .reasoning = *FindReasoningSyntax("think")};
  const std::string thought = "I could write <tool_call> here.";
  for (const bool starts : {false, true}) {
    options.starts_reasoning = starts;
    const auto constraint = Start(Lark(syntax, options));
    ASSERT_NE(constraint, nullptr);
    const std::string answer =
        Draw(*constraint, Tokens((starts ? "" : "<think>") + thought + "</think>\n"), &random);
    const Read read = ReadAnswer(syntax, answer, true, starts);
    EXPECT_EQ(read.reasoning, thought);
    EXPECT_EQ(read.calls.size(), 1u) << answer;
  }
  // They may be left out where the prompt has not begun them.
  options.starts_reasoning = false;
  const auto constraint = Start(Lark(syntax, options));
  EXPECT_EQ(
      ReadAnswer(syntax, Draw(*constraint, Tokens("<tool_call>"), &random), true).calls.size(), 1u);
}

TEST(ToolGrammar, ThoughtsMayBeMarkedByText) {
  Random random(5);
  const ToolSyntax& syntax = DefaultToolSyntax();
  const ReasoningSyntax marks{"text", "<thoughts>", "</thoughts>"};
  for (const bool needs_call : {false, true}) {
    const ToolGrammarOptions options{.needs_call = needs_call, .reasoning = marks};
    const std::string thoughts = "<thoughts>I could write <tool_call> here.</thoughts>";
    const auto constraint = Start(Lark(syntax, options));
    ASSERT_NE(constraint, nullptr);
    const std::string answer = Draw(
        *constraint, Tokens(thoughts + (needs_call ? "\n" : "\nSo:") + "<tool_call>"), &random);
    const Read read = ReadAnswer(syntax, std::string_view(answer).substr(thoughts.size()));
    EXPECT_EQ(read.text, needs_call ? "" : "\nSo:") << answer;
    EXPECT_EQ(read.calls.size(), 1u) << answer;
  }
}

TEST(ToolGrammar, ABareValueCannotHoldItsEndMark) {
  const ToolSyntax& syntax = *FindToolSyntax("qwen3_coder");
  const std::vector<ToolSchema> tools = {
      {"f",
       json::Parse(R"({"type":"object","properties":{"x":{"type":"string"}},"required":["x"]})", {},
                   "schema")
           .value()}};
  const auto grammar = ToolGrammar(syntax, tools, {.needs_call = true}, *TheTokenizer());
  const auto any = Start(**grammar);
  ASSERT_NE(any, nullptr);
  std::vector<uint32_t> mask(9);
  for (const TokenId id : Tokens("<tool_call>\n<function=f>\n<parameter=x>\na</parameter>")) {
    ASSERT_TRUE(any->ComputeMask(mask).ok());
    if (!any->Commit(id).ok()) return;  // The ">" that would end it without a line's end.
  }
  ADD_FAILURE() << "the value holds the mark";
}

TEST(ToolGrammar, AFunctionWithoutSchemaTakesAnyObject) {
  const std::vector<ToolSchema> tools = {{"f", nullptr}};
  Random random(4);
  for (const char* name : {"hermes", "qwen3_coder"}) {
    const auto grammar =
        ToolGrammar(*FindToolSyntax(name), tools, {.needs_call = true}, *TheTokenizer());
    ASSERT_TRUE(grammar.has_value() && grammar->has_value());
    const auto constraint = Start(**grammar);
    ASSERT_NE(constraint, nullptr);
    const std::vector<ToolCall> call = {{"f", {{"x", "y"}}}};
    std::string begin = WriteToolCalls(*FindToolSyntax(name), call);
    // As models write JSON.
    if (const size_t colon = begin.find("\":\"y"); colon != std::string::npos)
      begin.insert(colon + 2, " ");
    std::vector<TokenId> tokens = Tokens(begin);
    tokens.push_back(kEnd);
    EXPECT_EQ(Draw(*constraint, tokens, &random), begin);
  }
}

TEST(ToolGrammar, WhatBareTextCannotKeepToIsNamed) {
  const std::vector<ToolSchema> tools = {
      {"f", json::Parse(R"({"type":"object","properties":{"x":{"type":"string","pattern":"a+"}}})",
                        {}, "schema")
                .value()}};
  const auto grammar =
      ToolGrammar(*FindToolSyntax("qwen3_coder"), tools, {.needs_call = true}, *TheTokenizer());
  ASSERT_FALSE(grammar.has_value());
  EXPECT_EQ(grammar.error().code(), Code::kUnimplemented);
  EXPECT_NE(grammar.error().message().find("#/properties/x/pattern"), std::string::npos);
  EXPECT_TRUE(
      ToolGrammar(DefaultToolSyntax(), tools, {.needs_call = true}, *TheTokenizer()).has_value());
}

}  // namespace
}  // namespace tessera::text
