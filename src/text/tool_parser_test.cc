// SPDX-License-Identifier: Apache-2.0
#include "text/tool_parser.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace tessera::text {
namespace {

/// What an answer comes to, however it was cut: text, calls in order, the problem.
struct Outcome {
  std::string text;
  std::vector<std::pair<std::string, std::string>> calls;
  std::string problem;
  bool is_broken = false;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};
void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << "text \"" << outcome.text << "\"";
  for (const auto& [name, arguments] : outcome.calls)
    *out << ", " << name << "(" << arguments << ")";
  *out << (outcome.problem.empty() ? "" : ", problem: " + outcome.problem);
  if (outcome.is_broken) *out << ", broken";
}

const std::shared_ptr<const std::vector<ToolSpec>>& Tools() {
  static const auto tools = std::make_shared<const std::vector<ToolSpec>>(
      std::vector<ToolSpec>{{"add", {}}, {"get_weather", {"city", "note"}}});
  return tools;
}

ToolParser Parser(const ToolSyntax& syntax, ToolParser::Options options = {}) {
  return ToolParser(std::make_shared<ToolSyntax>(syntax), Tools(), options);
}

Outcome Collect(ToolParser& parser, std::vector<ToolEvent> events) {
  parser.Finish(&events);
  Outcome outcome;
  outcome.problem = parser.problem();
  outcome.is_broken = parser.has_broken_call();
  for (const ToolEvent& event : events) {
    if (event.kind == ToolEvent::Kind::kText) {
      outcome.text += event.text;
    } else if (event.kind == ToolEvent::Kind::kCall) {
      EXPECT_EQ(event.call, outcome.calls.size());
      outcome.calls.emplace_back(event.text, "");
    } else {
      EXPECT_EQ(event.call + 1, outcome.calls.size());
      outcome.calls.back().second += event.text;
    }
  }
  EXPECT_EQ(parser.calls(), outcome.calls.size());
  return outcome;
}

Outcome Parse(const ToolSyntax& syntax, std::string_view text, ToolParser::Options options = {}) {
  ToolParser parser = Parser(syntax, options);
  std::vector<ToolEvent> events;
  parser.Push(text, &events);
  return Collect(parser, std::move(events));
}

const ToolSyntax& Named(std::string_view name) {
  const ToolSyntax* syntax = FindToolSyntax(name);
  EXPECT_NE(syntax, nullptr) << name;
  return *syntax;
}

constexpr std::string_view kHermes =
    "Let me see.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\", "
    "\"days\": [1, 2]}}\n</tool_call>\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, "
    "\"b\": {\"c\": \"}\"}}}\n</tool_call>";

TEST(ToolParser, ReadsTextAndCalls) {
  const Outcome outcome = Parse(DefaultToolSyntax(), kHermes);
  EXPECT_EQ(outcome.text, "Let me see.");
  EXPECT_EQ(outcome.calls, (std::vector<std::pair<std::string, std::string>>{
                               {"get_weather", "{\"city\": \"Paris\", \"days\": [1, 2]}"},
                               {"add", "{\"a\": 1, \"b\": {\"c\": \"}\"}}"}}));
  EXPECT_EQ(outcome.problem, "");
}

TEST(ToolParser, EverySyntaxReadsWhatItWrites) {
  const std::vector<ToolCall> calls = {
      {"get_weather", {{"city", "Paris, \"FR\"\n<x> {"}, {"days", 3}}},
      {"add", {{"a", json::Array{1, "two", nullptr}}, {"b", json::Object{{"c", false}}}}}};
  for (const std::string_view name : ToolSyntaxNames()) {
    SCOPED_TRACE(name);
    const ToolSyntax& syntax = Named(name);
    const size_t count = syntax.several ? 2 : 1;
    const std::string written = WriteToolCalls(syntax, std::span(calls).first(count));
    for (const bool partial : {false, true}) {
      const Outcome outcome = Parse(syntax, written, {.gives_partial_calls = partial});
      ASSERT_EQ(outcome.calls.size(), count) << written;
      EXPECT_EQ(outcome.text, "");
      EXPECT_EQ(outcome.problem, "");
      for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(outcome.calls[i].first, calls[i].name);
        EXPECT_EQ(json::Parse(outcome.calls[i].second, {}, "a").value(),
                  json::Value(calls[i].arguments))
            << outcome.calls[i].second;
      }
    }
  }
}

TEST(ToolParser, TheNameComesBeforeTheCallIsComplete) {
  ToolParser parser = Parser(DefaultToolSyntax(), {.gives_partial_calls = true});
  std::vector<ToolEvent> events;
  parser.Push("<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1", &events);
  EXPECT_EQ(events, (std::vector<ToolEvent>{{ToolEvent::Kind::kCall, 0, "add"},
                                            {ToolEvent::Kind::kArguments, 0, "{\"a\": 1"}}));
  events.clear();
  parser.Push("2", &events);
  EXPECT_EQ(events, (std::vector<ToolEvent>{{ToolEvent::Kind::kArguments, 0, "2"}}));
}

TEST(ToolParser, TextIsGivenOutAsSoonAsItIsCertain) {
  ToolParser parser = Parser(DefaultToolSyntax());
  std::vector<ToolEvent> events;
  parser.Push("one < two <tool", &events);
  EXPECT_EQ(events, (std::vector<ToolEvent>{{ToolEvent::Kind::kText, 0, "one < two"}}));
  events.clear();
  parser.Push("s", &events);
  EXPECT_EQ(events, (std::vector<ToolEvent>{{ToolEvent::Kind::kText, 0, " <tools"}}));
}

TEST(ToolParser, WhatIsNoCallStaysText) {
  const std::string_view cases[] = {
      "Write <tool_call> before a call.",
      "<tool_call>\nget_weather\n</tool_call>",
      "<tool_call>{\"name\": \"absent\", \"arguments\": {}}</tool_call>",
      "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1,}}</tool_call>",
      "<tool_call>{\"name\": \"add\", \"arguments\": [1]}</tool_call>",
      "<tool_call>{\"name\": \"add\", \"arguments\": \"no JSON\"}</tool_call>",
      "<tool_call>{\"name\": 5, \"arguments\": {}}</tool_call>",
      "<tool_call>{\"name\": \"add\", \"name\": \"add\", \"arguments\": {}}</tool_call>",
      "<tool_call>{\"arguments\": {}}</tool_call>",
      "<tool_call>{}</tool_call>",
      "<tool_call>{'name': 'add', 'arguments': {}}</tool_call>",
      "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": ",
      "<tool_call>\n{",
      "<tool_call>",
  };
  for (const std::string_view text : cases) {
    const Outcome outcome = Parse(DefaultToolSyntax(), text);
    EXPECT_EQ(outcome.text, text);
    EXPECT_TRUE(outcome.calls.empty()) << text;
    EXPECT_NE(outcome.problem, "") << text;
  }
}

TEST(ToolParser, PlainTextIsLeftAlone) {
  for (const std::string_view text : {"", " ", "Hello.\n", "  a  b  ", "<tool_cal",
                                      "{\"name\": \"add\"}", "a <b> </tool_call>"}) {
    const Outcome outcome = Parse(DefaultToolSyntax(), text);
    EXPECT_EQ(outcome.text, text);
    EXPECT_EQ(outcome.problem, "") << text;
  }
}

TEST(ToolParser, AGoodCallBehindABadOneCounts) {
  const Outcome outcome =
      Parse(DefaultToolSyntax(), "<tool_call>{\"x\"<tool_call>{\"name\":\"add\",\"arguments\":{}}");
  EXPECT_EQ(outcome.text, "<tool_call>{\"x\"");
  ASSERT_EQ(outcome.calls.size(), 1u);
  EXPECT_NE(outcome.problem, "");
}

TEST(ToolParser, ModelsMayLeaveMarksOut) {
  const std::pair<const char*, const char*> cases[] = {
      {"hermes", "<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1}}"},
      {"hermes", "<tool_call>{\"arguments\":{\"a\":1},\"id\":7,\"name\":\"add\"}</tool_call>"},
      {"hermes", "<tool_call>{\"name\":\"add\",\"parameters\":{\"a\":1}}</tool_call>"},
      {"hermes", "<tool_call>{\"name\":\"add\",\"arguments\":\"{\\\"a\\\":1}\"}</tool_call>"},
      {"mistral", "[TOOL_CALLS] [ {\"name\":\"add\",\"arguments\":{\"a\":1}} ]"},
      {"mistral", "[TOOL_CALLS][{\"name\":\"add\",\"arguments\":{\"a\":1}}"},
      {"kimi_k2",
       "<|tool_calls_section_begin|><|tool_call_begin|>functions.add"
       "<|tool_call_argument_begin|>{\"a\":1}<|tool_call_end|>"},
      {"llama3_json", "\n{\"name\": \"add\", \"parameters\": {\"a\":1}}"},
      {"qwen3_coder", "<tool_call><function=add><parameter=a>1</parameter></function></tool_call>"},
  };
  for (const auto& [syntax, text] : cases) {
    const Outcome outcome = Parse(Named(syntax), text);
    ASSERT_EQ(outcome.calls.size(), 1u) << syntax << ": " << text << ": " << outcome.problem;
    EXPECT_EQ(json::Parse(outcome.calls[0].second, {}, "a").value(),
              json::Value(json::Object{{"a", 1}}));
    EXPECT_EQ(outcome.text, "");
  }
}

TEST(ToolParser, AFunctionWithoutArgumentsGetsAnEmptyObject) {
  for (const std::string_view arguments : {"", ", \"arguments\": null", ", \"arguments\": {}"}) {
    const Outcome outcome =
        Parse(DefaultToolSyntax(),
              fmt::format("<tool_call>{{\"name\": \"add\"{}}}</tool_call>", arguments));
    ASSERT_EQ(outcome.calls.size(), 1u);
    EXPECT_EQ(outcome.calls[0].second, "{}");
  }
  const Outcome coder =
      Parse(Named("qwen3_coder"), "<tool_call>\n<function=add>\n</function>\n</tool_call>");
  ASSERT_EQ(coder.calls.size(), 1u) << coder.problem;
  EXPECT_EQ(coder.calls[0].second, "{}");
}

TEST(ToolParser, BareValuesBecomeWhatTheSchemaSays) {
  const Outcome outcome = Parse(
      Named("qwen3_coder"),
      "<tool_call>\n<function=get_weather>\n<parameter=city>\n75\n</parameter>\n<parameter=days>\n"
      "75\n</parameter>\n<parameter=other>\n\n two\nlines "
      "\n</parameter>\n</function>\n</tool_call>");
  ASSERT_EQ(outcome.calls.size(), 1u) << outcome.problem;
  EXPECT_EQ(outcome.calls[0].second, R"({"city": "75", "days": 75, "other": "\n two\nlines "})");
}

TEST(ToolParser, WithoutAMarkOnlyAnAnswerThatBeginsWithAnObjectIsACall) {
  const ToolSyntax& llama = Named("llama3_json");
  EXPECT_EQ(Parse(llama, "Use {\"name\": \"add\", \"parameters\": {}}").calls.size(), 0u);
  const Outcome data = Parse(llama, "{\"name\": \"Ada\", \"age\": 36}");
  EXPECT_EQ(data.text, "{\"name\": \"Ada\", \"age\": 36}");
  EXPECT_EQ(data.calls.size(), 0u);
}

TEST(ToolParser, NothingIsReadBehindTheLastCallThatMayBe) {
  ToolParser parser = Parser(DefaultToolSyntax(), {.calls_max = 1});
  std::vector<ToolEvent> events;
  parser.Push(kHermes, &events);
  EXPECT_TRUE(parser.is_full());
  const Outcome outcome = Collect(parser, std::move(events));
  EXPECT_EQ(outcome.calls.size(), 1u);
  EXPECT_EQ(outcome.text, "Let me see.");
}

TEST(ToolParser, ACallThatBreaksOffAfterItWasGivenOutSaysSo) {
  const std::string_view cut = "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": ";
  const Outcome partial = Parse(DefaultToolSyntax(), cut, {.gives_partial_calls = true});
  EXPECT_TRUE(partial.is_broken);
  ASSERT_EQ(partial.calls.size(), 1u);
  EXPECT_EQ(partial.calls[0].second, "{\"a\": ");
  EXPECT_EQ(partial.text, "");
  const Outcome bad =
      Parse(DefaultToolSyntax(), std::string(cut) + "x} and more", {.gives_partial_calls = true});
  EXPECT_TRUE(bad.is_broken);
  EXPECT_EQ(bad.text, "x} and more");
}

TEST(ToolParser, TextAroundCallsKeepsItsOwnSpace) {
  const std::string call = "<tool_call>{\"name\": \"add\"}</tool_call>";
  EXPECT_EQ(Parse(DefaultToolSyntax(), " a \n" + call + "\n b \n" + call + "\n").text, " a\n b");
}

/// Pieces that the syntaxes are made of, and some that break them.
std::string RandomAnswer(const ToolSyntax& syntax, Random* random) {
  const std::vector<ToolCall> calls = {{"add", {{"a", 1}}},
                                       {"get_weather", {{"city", "Zürich </x>"}, {"n", 2.5}}},
                                       {"absent", {{"a", "b"}}}};
  const std::string marks[] = {syntax.section_begin, syntax.call_begin,   syntax.call_end,
                               syntax.separator,     syntax.section_end,  syntax.parameter_begin,
                               syntax.key_end,       syntax.parameter_end};
  std::string text;
  for (uint64_t n = random->Below(7); n > 0; --n) {
    switch (random->Below(5)) {
      case 0:
        text += WriteToolCalls(syntax, std::span(calls).first(1 + random->Below(3)));
        break;
      case 1:
        text += marks[random->Below(std::size(marks))];
        break;
      case 2: {
        const std::string whole = WriteToolCalls(syntax, std::span(&calls[random->Below(3)], 1));
        text += whole.substr(0, random->Below(whole.size() + 1));
        break;
      }
      case 3:
        text += "{\"name\": ";
        break;
      default:
        text += " some\n <text> ";
    }
  }
  return text;
}

TEST(ToolParser, EverySplitGivesTheSame) {
  Random random(3);
  size_t calls = 0;
  for (const std::string_view name : ToolSyntaxNames()) {
    const ToolSyntax& syntax = Named(name);
    for (int round = 0; round < 40; ++round) {
      const std::string text = RandomAnswer(syntax, &random);
      const ToolParser::Options options{.gives_partial_calls = round % 2 == 0,
                                        .calls_max = round % 3 == 0 ? 1u : 100u};
      const Outcome whole = Parse(syntax, text, options);
      calls += whole.calls.size();
      for (size_t cut = 0; cut <= text.size(); ++cut) {
        ToolParser parser = Parser(syntax, options);
        std::vector<ToolEvent> events;
        parser.Push(std::string_view(text).substr(0, cut), &events);
        parser.Push(std::string_view(text).substr(cut), &events);
        ASSERT_EQ(Collect(parser, std::move(events)), whole) << name << " cut at " << cut << "\n"
                                                             << text;
      }
      ToolParser parser = Parser(syntax, options);
      std::vector<ToolEvent> events;
      for (const char c : text) parser.Push({&c, 1}, &events);
      ASSERT_EQ(Collect(parser, std::move(events)), whole) << name << "\n" << text;
    }
  }
  EXPECT_GT(calls, 500u);
}

/// Held-back calls: what is given out is a call of a tool with an object, whatever comes.
TEST(ToolParser, ACompleteCallIsAlwaysValid) {
  Random random(5);
  for (const std::string_view name : ToolSyntaxNames()) {
    const ToolSyntax& syntax = Named(name);
    for (int round = 0; round < 300; ++round) {
      const std::string text = RandomAnswer(syntax, &random);
      const Outcome outcome = Parse(syntax, text);
      EXPECT_FALSE(outcome.is_broken);
      for (const auto& [function, arguments] : outcome.calls) {
        EXPECT_TRUE(function == "add" || function == "get_weather");
        const auto value = json::Parse(arguments, {.unique_keys = false}, "arguments");
        EXPECT_TRUE(value.has_value() && value->is_object()) << name << ": " << arguments;
      }
    }
  }
}

}  // namespace
}  // namespace tessera::text
