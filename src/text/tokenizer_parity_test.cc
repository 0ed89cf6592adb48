// SPDX-License-Identifier: Apache-2.0
//
// Every case of the reference fixtures (fixtures/README.md, section tokenizers), id for id and
// byte for byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "support/fixtures.h"
#include "text/test_vocabularies.h"
#include "text/tokenizer.h"
#include "text/tokenizer_table.h"

namespace tessera::text {
namespace {

std::vector<TokenId> Ids(const json::Object& row, std::string_view key) {
  std::vector<TokenId> ids;
  for (const json::Value& id : row.at(key).as_array()) {
    ids.push_back(static_cast<TokenId>(id.as_int64()));
  }
  return ids;
}

std::string Text(const json::Object& row, std::string_view key) {
  return std::string(row.at(key).as_string());
}

std::vector<TokenId> MustEncode(const Tokenizer& tokenizer, const std::string& text,
                                bool add_special, bool parse_special) {
  auto ids = tokenizer.Encode(text, {.add_special = add_special, .parse_special = parse_special});
  EXPECT_TRUE(ids.has_value()) << StatusOf(ids).ToString();
  return ids.value_or(std::vector<TokenId>());
}

std::string MustDecode(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                       bool skip_special) {
  auto text = tokenizer.Decode(ids, skip_special);
  EXPECT_TRUE(text.has_value()) << StatusOf(text).ToString();
  return text.value_or("");
}

std::string Streamed(const std::shared_ptr<const Tokenizer>& tokenizer,
                     const std::vector<TokenId>& ids, bool skip_special) {
  const auto stream = Detokenizer::Make(tokenizer, skip_special);
  std::string text;
  for (const TokenId id : ids) text += stream->Push(id).value();
  return text + stream->Flush().value();
}

void CheckIds(const Tokenizer& tokenizer, const json::Object& row) {
  const std::string text = Text(row, "text");
  EXPECT_EQ(MustEncode(tokenizer, text, true, true), Ids(row, "ids"));
  EXPECT_EQ(MustEncode(tokenizer, text, false, true), Ids(row, "ids_plain"));
}

void CheckText(const std::shared_ptr<const Tokenizer>& tokenizer, const json::Object& row) {
  const std::vector<TokenId> ids = Ids(row, "ids");
  EXPECT_EQ(MustDecode(*tokenizer, ids, true), Text(row, "decoded"));
  EXPECT_EQ(MustDecode(*tokenizer, ids, false), Text(row, "decoded_raw"));
  EXPECT_EQ(Streamed(tokenizer, ids, true), Text(row, "decoded"));
  EXPECT_EQ(Streamed(tokenizer, ids, false), Text(row, "decoded_raw"));
}

/// The tokenizer itself and its stored form: each must give what the reference gives.
const std::vector<std::shared_ptr<const Tokenizer>>& BothForms(
    const std::shared_ptr<const Tokenizer>& tokenizer) {
  static std::map<const Tokenizer*, std::vector<std::shared_ptr<const Tokenizer>>> made;
  auto& forms = made[tokenizer.get()];
  if (!forms.empty()) return forms;
  forms.push_back(tokenizer);
  const auto table = MakeTokenizerTable(*tokenizer);
  EXPECT_TRUE(table.has_value()) << StatusOf(table).ToString();
  if (!table.has_value()) return forms;
  auto stored = ReadTokenizerTable(*table);
  EXPECT_TRUE(stored.has_value()) << StatusOf(stored).ToString();
  if (stored.has_value()) forms.push_back(*std::move(stored));
  return forms;
}

std::string TestName(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
}

class NpmParity : public ::testing::TestWithParam<std::string> {};

TEST_P(NpmParity, GivesTheReferencesIdsAndText) {
  const auto tokenizer = NpmTokenizer(GetParam());
  ASSERT_NE(tokenizer, nullptr);
  const auto forms = BothForms(tokenizer);
  for (const json::Value& row :
       testing::ReadJsonLines(testing::Shared("fixtures/tokenizers/" + GetParam() + ".jsonl"))) {
    SCOPED_TRACE(Text(row.as_object(), "id"));
    for (const auto& form : forms) {
      CheckIds(*form, row.as_object());
      CheckText(form, row.as_object());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, NpmParity, ::testing::ValuesIn(NpmFamilies()), TestName);

class GgufParity : public ::testing::TestWithParam<std::string> {};

void CheckGgufRows(const Tokenizer& tokenizer, std::string_view fixture) {
  for (const json::Value& value : testing::ReadJsonLines(testing::Shared(fixture))) {
    const json::Object& row = value.as_object();
    SCOPED_TRACE(Text(row, "id"));
    CheckIds(tokenizer, row);
    const auto* plain = row.if_contains("ids_no_special_parse");
    const std::vector<TokenId> expected =
        Ids(row, plain != nullptr ? "ids_no_special_parse" : "ids_plain");
    EXPECT_EQ(MustEncode(tokenizer, Text(row, "text"), false, false), expected);
  }
}

TEST_P(GgufParity, GivesTheReferencesIds) {
  const auto tokenizer = GgufTokenizer("llama_cpp_models/ggml-vocab-" + GetParam() + ".gguf");
  ASSERT_NE(tokenizer, nullptr);
  for (const auto& form : BothForms(tokenizer))
    CheckGgufRows(*form, "fixtures/tokenizers/gguf_vocab/" + GetParam() + ".jsonl");
}

TEST_P(GgufParity, SurvivesAsTokenizerJson) {
  const auto tokenizer = GgufTokenizer("llama_cpp_models/ggml-vocab-" + GetParam() + ".gguf");
  ASSERT_NE(tokenizer, nullptr);
  const auto again = Tokenizer::FromJson(tokenizer->ToJson());
  ASSERT_TRUE(again.has_value()) << StatusOf(again).ToString();
  CheckGgufRows(**again, "fixtures/tokenizers/gguf_vocab/" + GetParam() + ".jsonl");
  EXPECT_EQ((*again)->vocab_size(), tokenizer->vocab_size());
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, GgufParity, ::testing::ValuesIn(GgufVocabularyNames()),
                         TestName);

TEST(TokenizerParity, SmolLm2FromGgufGivesTheReferencesIdsAndText) {
  const auto tokenizer = GgufTokenizer("SmolLM2-135M-Instruct.Q4_1.gguf");
  ASSERT_NE(tokenizer, nullptr);
  const auto forms = BothForms(tokenizer);
  for (const auto& form : forms) CheckGgufRows(*form, "fixtures/tokenizers/smollm2_gguf.jsonl");
  for (const json::Value& row :
       testing::ReadJsonLines(testing::Shared("fixtures/tokenizers/smollm2_gguf.jsonl"))) {
    SCOPED_TRACE(Text(row.as_object(), "id"));
    for (const auto& form : forms) CheckText(form, row.as_object());
  }
  for (const json::Value& row :
       testing::ReadJsonLines(testing::Shared("fixtures/tokenizers/smollm2_hf_digits.jsonl"))) {
    SCOPED_TRACE(Text(row.as_object(), "id"));
    for (const auto& form : forms) CheckIds(*form, row.as_object());
  }
}

TEST(TokenizerParity, TinyModelFromJsonAndFromGgufAgree) {
  const auto from_json = Tokenizer::FromJson(
      testing::ReadAll(testing::Shared("fixtures/tiny_llama/hf/tokenizer.json")));
  ASSERT_TRUE(from_json.has_value()) << StatusOf(from_json).ToString();
  const auto metadata = ReadGgufTokenizer(testing::Shared("fixtures/tiny_llama/tiny-f16.gguf"));
  const auto from_gguf = Tokenizer::FromGguf(metadata.vocabulary());
  ASSERT_TRUE(from_gguf.has_value()) << StatusOf(from_gguf).ToString();
  const auto json_forms = BothForms(*from_json);
  const auto gguf_forms = BothForms(*from_gguf);
  for (const json::Value& row :
       testing::ReadJsonLines(testing::Shared("fixtures/tiny_llama/tokenizer.jsonl"))) {
    SCOPED_TRACE(Text(row.as_object(), "id"));
    for (const auto& form : json_forms) {
      CheckIds(*form, row.as_object());
      CheckText(form, row.as_object());
    }
    for (const auto& form : gguf_forms) CheckIds(*form, row.as_object());
  }
}

void CheckStream(const std::shared_ptr<const Tokenizer>& tokenizer, const json::Object& row) {
  const auto stream = Detokenizer::Make(tokenizer, true);
  std::vector<std::string> deltas;
  std::vector<std::string> expected;
  std::string all;
  for (const TokenId id : Ids(row, "ids")) {
    deltas.push_back(stream->Push(id).value());
    all += deltas.back();
  }
  for (const json::Value& delta : row.at("deltas").as_array()) {
    expected.emplace_back(delta.as_string());
  }
  EXPECT_EQ(all.find("\xEF\xBF\xBD"), std::string::npos) << "U+FFFD before the end";
  const std::string flush = stream->Flush().value();
  EXPECT_EQ(all + flush, Text(row, "full"));
  if (row.at("exact").as_bool()) {
    EXPECT_EQ(deltas, expected);
    EXPECT_EQ(flush, Text(row, "flush"));
  }
}

TEST(TokenizerParity, StreamsGiveTheReferencesPieces) {
  std::map<std::string, std::shared_ptr<const Tokenizer>> gguf;
  const std::vector<std::string> families = NpmFamilies();
  for (const json::Value& value :
       testing::ReadJsonLines(testing::Shared("fixtures/tokenizers/streaming.jsonl"))) {
    const json::Object& row = value.as_object();
    const std::string family = Text(row, "family");
    SCOPED_TRACE(family + " " + Text(row, "id"));
    std::shared_ptr<const Tokenizer> tokenizer;
    if (family == "smollm2_hf_gguf") {
      auto& kept = gguf[family];
      if (kept == nullptr) kept = GgufTokenizer("SmolLM2-135M-Instruct.Q4_1.gguf");
      tokenizer = kept;
    } else if (std::ranges::find(families, family) != families.end()) {
      tokenizer = NpmTokenizer(family);
    } else {
      continue;
    }
    ASSERT_NE(tokenizer, nullptr);
    for (const auto& form : BothForms(tokenizer)) CheckStream(form, row);
  }
}

}  // namespace
}  // namespace tessera::text
