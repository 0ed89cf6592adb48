// SPDX-License-Identifier: Apache-2.0
#include "text/json_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "support/fixtures.h"
#include "text/limits.h"

namespace tessera::text {
namespace {

using ::testing::HasSubstr;

class JsonLines : public ::testing::Test {
 protected:
  void SetUp() override {
    auto tokenizer = Tokenizer::FromJson(
        testing::ReadAll(testing::Shared("fixtures/tiny_llama/hf/tokenizer.json")));
    ASSERT_TRUE(tokenizer.has_value()) << StatusOf(tokenizer).ToString();
    tokenizer_ = *tokenizer;
  }
  std::string Tokenized(std::string_view line) { return TokenizeLine(*tokenizer_, line, {}); }
  std::string Detokenized(std::string_view line) { return DetokenizeLine(*tokenizer_, line, true); }
  static std::string Error(const std::string& line) {
    const auto value = json::Parse(line, {}, "answer");
    EXPECT_TRUE(value.has_value()) << line;
    const json::Object& object = value->as_object();
    EXPECT_EQ(object.size(), 1u) << line;
    return object.contains("error") ? std::string(object.at("error").as_string()) : "";
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_F(JsonLines, AnswersEveryFixtureRow) {
  for (const json::Value& value :
       testing::ReadJsonLines(testing::Shared("fixtures/tiny_llama/tokenizer.jsonl"))) {
    const json::Object& row = value.as_object();
    const std::string text = json::Serialize(json::Object{{"text", row.at("text")}});
    const std::string ids = json::Serialize(json::Object{{"ids", row.at("ids")}});
    EXPECT_EQ(Tokenized(text), ids);
    EXPECT_EQ(TokenizeLine(*tokenizer_, text, {.add_special = false}),
              json::Serialize(json::Object{{"ids", row.at("ids_plain")}}));
    EXPECT_EQ(Detokenized(ids), json::Serialize(json::Object{{"text", row.at("decoded")}}));
    EXPECT_EQ(DetokenizeLine(*tokenizer_, ids, false),
              json::Serialize(json::Object{{"text", row.at("decoded_raw")}}));
  }
}

TEST_F(JsonLines, ABadLineGivesAnErrorThatSaysWhy) {
  EXPECT_THAT(Error(Tokenized("not json")), HasSubstr("line"));
  EXPECT_THAT(Error(Tokenized("")), HasSubstr("line"));
  EXPECT_THAT(Error(Tokenized("[]")), HasSubstr("array"));
  EXPECT_THAT(Error(Tokenized(R"({"txet":"a"})")), HasSubstr("txet"));
  EXPECT_THAT(Error(Tokenized(R"({"text":"a","more":1})")), HasSubstr("more"));
  EXPECT_THAT(Error(Tokenized("{}")), HasSubstr("missing"));
  EXPECT_THAT(Error(Tokenized(R"({"text":7})")), HasSubstr("string"));
  EXPECT_THAT(Error(Tokenized("{\"text\":\"\xff\"}")), HasSubstr("line"));
  EXPECT_THAT(Error(Detokenized(R"({"ids":"a"})")), HasSubstr("array"));
  EXPECT_THAT(Error(Detokenized(R"({"ids":[1,"a"]})")), HasSubstr("[1]"));
  EXPECT_THAT(Error(Detokenized(R"({"ids":[1.5]})")), HasSubstr("token id"));
  EXPECT_THAT(Error(Detokenized(R"({"ids":[-1]})")), HasSubstr("token id"));
  EXPECT_THAT(Error(Detokenized(R"({"ids":[512]})")), HasSubstr("512"));
  EXPECT_THAT(Error(Detokenized(R"({"ids":[99999999999]})")), HasSubstr("token id"));
}

TEST_F(JsonLines, ALineHasALimit) {
  std::string line = R"({"text":"a"})";
  const std::string answer = Tokenized(line);
  ASSERT_THAT(answer, HasSubstr("ids"));
  for (const uint64_t size : {kMaxJsonLineBytes - 1, kMaxJsonLineBytes}) {
    line.resize(size, ' ');
    EXPECT_EQ(Tokenized(line), answer) << size;
  }
  line.resize(kMaxJsonLineBytes + 1, ' ');
  EXPECT_THAT(Error(Tokenized(line)), HasSubstr("more than the limit"));
  EXPECT_THAT(Error(Detokenized(line)), HasSubstr("more than the limit"));
}

TEST_F(JsonLines, EmptyTextAndNoIdsAreFine) {
  EXPECT_EQ(TokenizeLine(*tokenizer_, R"({"text":""})", {.add_special = false}), R"({"ids":[]})");
  EXPECT_EQ(Detokenized(R"({"ids":[]})"), R"({"text":""})");
}

}  // namespace
}  // namespace tessera::text
