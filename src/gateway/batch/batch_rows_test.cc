// SPDX-License-Identifier: Apache-2.0
#include "gateway/batch/batch_rows.h"

#include <gtest/gtest.h>

#include <vector>

#include "gateway/limits.h"

namespace tessera::gateway {
namespace {

struct Rows {
  std::vector<BatchRow> all;
  OnRow on_row = [this](BatchRow row) -> ApiResult<void> {
    EXPECT_EQ(*ReadRow(WriteRow(row)), row) << "what is kept reads back";
    all.push_back(std::move(row));
    return {};
  };
};

json::Value Parse(std::string_view text) {
  return *json::Parse(text, {}, "test");
}

TEST(ReadContent, PromptsBecomeARowEach) {
  Rows rows;
  const auto facts =
      ReadContent(Parse(R"({"prompts": ["a", "b", "a", 7], "max_new_tokens": 5, "temperature": 0.5,
                "stop_sequences": ["x"], "return_token_log_probs": true, "top_k": null})"),
                  "m", rows.on_row);
  ASSERT_TRUE(facts.has_value()) << facts.error().text;
  EXPECT_EQ(facts->form, BatchForm::kPrompts);
  EXPECT_TRUE(facts->wants_tokens);
  ASSERT_EQ(rows.all.size(), 4u);
  EXPECT_EQ(rows.all[2].target, "/v1/completions");
  EXPECT_EQ(rows.all[2].body.at("prompt"), "a");
  EXPECT_EQ(rows.all[2].body.at("max_tokens"), 5);
  EXPECT_EQ(rows.all[2].body.at("stop"), json::Array{"x"});
  EXPECT_FALSE(rows.all[2].body.contains("model"));
  EXPECT_EQ(rows.all[3].error, "a prompt must be a text") << "alone";
}

TEST(ReadContent, FieldsOfPromptsAreNamed) {
  Rows rows;
  const auto missing =
      ReadContent(Parse(R"({"prompts": ["a"], "temperature": 0})"), "m", rows.on_row);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().status, 422);
  EXPECT_EQ(missing.error().fields.at(0).loc,
            (std::vector<std::string>{"body", "content", "max_new_tokens"}));
  EXPECT_EQ(
      ReadContent(Parse(R"({"max_new_tokens": 1})"), "m", rows.on_row).error().fields.at(0).loc,
      (std::vector<std::string>{"body", "content", "prompts"}));
  for (const char* bad :
       {R"("text")", "7", R"({"prompts": "a", "max_new_tokens": 1, "temperature": 0})"})
    EXPECT_EQ(ReadContent(Parse(bad), "m", rows.on_row).error().status, 422) << bad;
  EXPECT_EQ(ReadContent(Parse(R"({"prompts": [], "max_new_tokens": 1, "temperature": 0})"), "m",
                        rows.on_row)
                .error()
                .status,
            400);
  EXPECT_TRUE(rows.all.empty());
}

TEST(ReadContent, RequestsAreChatsOrTexts) {
  Rows rows;
  const auto facts = ReadContent(
      Parse(R"([{"messages": [], "max_tokens": 3, "stream": false, "model": null, "top_p": null},
                {"prompt": [1, 2], "model": "m"}])"),
      "m", rows.on_row);
  ASSERT_TRUE(facts.has_value());
  EXPECT_EQ(facts->form, BatchForm::kRequests);
  EXPECT_EQ(rows.all[0].target, "/v1/chat/completions");
  EXPECT_EQ(rows.all[0].body, (json::Object{{"messages", json::Array()}, {"max_tokens", 3}}));
  EXPECT_EQ(rows.all[1].target, "/v1/completions");
  EXPECT_EQ(rows.all[1].body, (json::Object{{"prompt", json::Array{1, 2}}}));
}

TEST(ReadContent, ABadRequestFailsAlone) {
  Rows rows;
  ASSERT_TRUE(
      ReadContent(Parse(R"([7, {}, {"prompt": "a", "messages": []}, {"prompt": "a", "stream": true},
                                    {"prompt": "a", "model": "other"}, {"prompt": "a"}])"),
                  "m", rows.on_row)
          .has_value());
  ASSERT_EQ(rows.all.size(), 6u);
  for (size_t i = 0; i < 5; ++i) EXPECT_FALSE(rows.all[i].error.empty()) << i;
  EXPECT_EQ(rows.all[5].error, "");
}

TEST(ReadContentText, TakesJsonAndLines) {
  for (const char* text :
       {R"([{"prompt": "a"}, {"prompt": "b"}])", "{\"prompt\": \"a\"}\n{\"prompt\": \"b\"}",
        "\n{\"prompt\": \"a\"}\r\n\n  \n{\"prompt\": \"b\"}\n"}) {
    Rows rows;
    const auto facts = ReadContentText(text, "m", rows.on_row);
    if (text[0] == '\n') {
      EXPECT_FALSE(facts.has_value()) << "it must begin with a line";
      continue;
    }
    ASSERT_TRUE(facts.has_value()) << text << facts.error().text;
    ASSERT_EQ(rows.all.size(), 2u) << text;
    EXPECT_EQ(rows.all[1].body.at("prompt"), "b");
  }
  Rows one;
  ASSERT_TRUE(ReadContentText("{\"prompt\":\n \"a\"}\n", "m", one.on_row).has_value());
  EXPECT_EQ(one.all.size(), 1u) << "a request over several lines";
  Rows mixed;
  ASSERT_TRUE(ReadContentText("{\"prompt\": \"a\"}\n{broken\n", "m", mixed.on_row).has_value());
  EXPECT_FALSE(mixed.all.at(1).error.empty());
  for (const char* bad : {"", "no json", "{\"a\": 1}", "{broken\n{\"prompt\": \"a\"}"})
    EXPECT_FALSE(ReadContentText(bad, "m", mixed.on_row).has_value()) << bad;
}

TEST(ReadContent, RowsAreLimited) {
  json::Object content{{"max_new_tokens", 1}, {"temperature", 0}};
  json::Array prompts(static_cast<size_t>(kBatchRowsMax), json::Value("a"));
  content["prompts"] = prompts;
  int64_t count = 0;
  const OnRow counting = [&](const BatchRow&) -> ApiResult<void> {
    ++count;
    return {};
  };
  EXPECT_TRUE(ReadContent(content, "m", counting).has_value());
  EXPECT_EQ(count, kBatchRowsMax);
  prompts.push_back("a");
  content["prompts"] = prompts;
  EXPECT_EQ(ReadContent(content, "m", counting).error().status, 400);
}

std::string Line(std::string_view id, std::string_view body,
                 std::string_view url = "/v1/completions") {
  return std::string(R"({"custom_id": ")") + std::string(id) + R"(", "method": "POST", "url": ")" +
         std::string(url) + R"(", "body": )" + std::string(body) + "}\n";
}

TEST(ReadBatchLines, OneModelAnswersAll) {
  Rows rows;
  std::string model;
  const std::string text = Line("a", R"({"model": "e", "prompt": "x"})") + "\n" +
                           Line("b", R"({"model": "e", "prompt": "y", "stream": null})");
  ASSERT_TRUE(ReadBatchLines(text, "/v1/completions", &model, rows.on_row).has_value());
  EXPECT_EQ(model, "e");
  ASSERT_EQ(rows.all.size(), 2u);
  EXPECT_EQ(rows.all[1].custom_id, "b");
  EXPECT_EQ(rows.all[1].body, (json::Object{{"prompt", "y"}}));
}

TEST(ReadBatchLines, ABadLineFailsAlone) {
  Rows rows;
  std::string model;
  const std::string text =
      Line("a", R"({"model": "e", "prompt": "x"})") + "garbage\n7\n" +
      Line("a", R"({"model": "e"})") + Line("", R"({"model": "e"})") +
      Line("c", R"({"model": "f"})") + Line("d", "{}") + Line("e", "1") +
      Line("f", R"({"model": "e"})", "/v1/chat/completions") +
      Line("g", R"({"model": "e", "stream": true})") +
      R"({"custom_id": "h", "url": "/v1/completions", "body": {"model": "e"}})";
  ASSERT_TRUE(ReadBatchLines(text, "/v1/completions", &model, rows.on_row).has_value());
  ASSERT_EQ(rows.all.size(), 11u);
  EXPECT_EQ(rows.all[0].error, "");
  for (size_t i = 1; i < rows.all.size(); ++i) EXPECT_FALSE(rows.all[i].error.empty()) << i;
  EXPECT_EQ(rows.all[5].custom_id, "c") << "known, so that it can be found";
  EXPECT_FALSE(ReadBatchLines("\n \n", "/v1/completions", &model, rows.on_row).has_value());
}

}  // namespace
}  // namespace tessera::gateway
