// SPDX-License-Identifier: Apache-2.0
//
// Every row of fixtures/chat_templates and fixtures/jinja: text that transformers rendered with the
// real templates, and the errors that it met. testdata/jinja_language.jsonl is of the same kind:
// what Jinja2 3.1.6 in transformers' environment gives for the features of the language, filter by
// filter; its first line holds the variables.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/json.h"
#include "support/fixtures.h"
#include "text/chat_template.h"
#include "text/fixture_templates.h"
#include "text/render_lines.h"

namespace tessera::text {
namespace {

using testing::ReadJson;
using testing::ReadJsonLines;
using testing::Shared;

constexpr int64_t kClock = kFixtureClock;

/// Rows where we succeed although the reference fails, by "template/id", with the reason.
/// Empty: we fail wherever the reference does.
const std::map<std::string, std::string>& Deviations() {
  static const std::map<std::string, std::string> kNone;
  return kNone;
}

std::string Text(const json::Object& object, std::string_view key) {
  return std::string(object.at(key).as_string());
}

/// Compares an outcome with a row's "expected" or "error"; empty = they agree.
std::string Difference(const Result<std::string>& got, const json::Object& row) {
  if (const auto* expected = row.if_contains("expected")) {
    if (!got.has_value()) return "failed: " + got.error().ToString();
    return *got == std::string_view(expected->as_string()) ? "" : "got " + *got;
  }
  const json::Object& error = row.at("error").as_object();
  const std::string kind = Text(error, "kind");
  if (got.has_value()) return "rendered, but the reference fails with " + kind;
  if (kind != "raise_exception" || got.error().message() == Text(error, "message")) return "";
  return "the message is " + got.error().message();
}

class Counts {
 public:
  void Check(const std::string& id, const Result<std::string>& got, const json::Object& row) {
    ++rows_;
    const std::string difference = Difference(got, row);
    const auto listed = Deviations().find(id);
    if (listed == Deviations().end()) {
      EXPECT_EQ(difference, "") << id;
    } else {
      EXPECT_NE(difference, "") << id << " agrees: take it off the list";
    }
  }
  int rows() const { return rows_; }

 private:
  int rows_ = 0;
};

TEST(ChatTemplateParity, EverySnippetRendersAsJinja) {
  Counts counts;
  for (const json::Value& value : ReadJsonLines(Shared("fixtures/jinja/snippets.jsonl"))) {
    const json::Object& row = value.as_object();
    const auto parsed = ChatTemplate::Parse(Text(row, "template"));
    Result<std::string> got = Fail(StatusOf(parsed));
    if (parsed.has_value()) {
      RenderInput input;
      input.vars = row.at("vars").as_object();
      input.now_unix_seconds = kClock;
      got = (*parsed)->Render(input);
    }
    counts.Check("snippets/" + Text(row, "id"), got, row);
  }
  EXPECT_GE(counts.rows(), 50);
}

TEST(ChatTemplateParity, EveryFeatureOfTheLanguageWorksAsInJinja) {
  const auto rows = ReadJsonLines(testing::SourceDir() / "src/text/testdata/jinja_language.jsonl");
  ASSERT_FALSE(rows.empty());
  RenderInput input;
  input.add_generation_prompt = false;
  input.vars = rows[0].at("vars").as_object();
  input.now_unix_seconds = kClock;
  Counts counts;
  for (size_t i = 1; i < rows.size(); ++i) {
    const json::Object& row = rows[i].as_object();
    const auto parsed = ChatTemplate::Parse(Text(row, "template"));
    Result<std::string> got = Fail(StatusOf(parsed));
    if (parsed.has_value()) got = (*parsed)->Render(input);
    counts.Check(Text(row, "template"), got, row);
  }
  EXPECT_GE(counts.rows(), 350);
}

TEST(ChatTemplateParity, EveryConversationRendersAsTransformers) {
  std::map<std::string, json::Object> conversations;
  const json::Value inputs = ReadJson(Shared("fixtures/inputs/conversations.json"));
  for (const json::Value& value : inputs.as_array()) {
    conversations[Text(value.as_object(), "id")] = value.as_object();
  }
  Counts counts;
  for (const auto& [name, source] : FixtureTemplates()) {
    const auto parsed = ChatTemplate::Parse(source.source);
    ASSERT_TRUE(parsed.has_value()) << name << ": " << parsed.error().ToString();
    const std::string file = "fixtures/chat_templates/" + std::string(name) + ".jsonl";
    for (const json::Value& value : ReadJsonLines(Shared(file))) {
      const json::Object& row = value.as_object();
      const json::Object& conversation = conversations.at(Text(row, "conversation"));
      RenderInput input;
      input.messages = conversation.at("messages");
      if (const auto* tools = conversation.if_contains("tools")) input.tools = *tools;
      input.add_generation_prompt = row.at("add_generation_prompt").as_bool();
      input.vars = row.at("vars").as_object();
      input.now_unix_seconds = kClock;
      const std::string id = std::string(name) + "/" + Text(row, "id");
      counts.Check(id, (*parsed)->Render(input), row);
    }
  }
  EXPECT_GE(counts.rows(), 31 * 58);
}

}  // namespace
}  // namespace tessera::text
