// SPDX-License-Identifier: Apache-2.0
#include "server/openai/fim.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "server/openai/completion_request.h"
#include "support/fake_model.h"

namespace tessera::server::openai {
namespace {

using Ids = std::vector<text::TokenId>;
using testing::FakeTokenizer;

ServedModel ModelWith(std::vector<std::string> specials, text::TokenId bos = -1) {
  ServedModel model = testing::FakeServedModel();
  model.tokenizer = std::make_shared<const FakeTokenizer>(std::move(specials), bos);
  return model;
}
ApiResult<CompletionRequest> Read(const ServedModel& model, std::string_view members) {
  return ReadCompletionRequest(fmt::format(R"({{"model":"org/fake",{}}})", members), model);
}

TEST(Fim, TheVocabularyTellsTheFamily) {
  const FakeTokenizer qwen({"<|fim_middle|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|file_sep|>"});
  const auto found = FindFimTokens(qwen);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->prefix, 257);
  EXPECT_EQ(found->suffix, 258);
  EXPECT_EQ(found->middle, 256);
  EXPECT_EQ(found->ends, Ids({259}));
  EXPECT_FALSE(FindFimTokens(FakeTokenizer({"<|fim_prefix|>", "<|fim_suffix|>"})).has_value())
      << "a family is whole or it is not one";
  EXPECT_FALSE(FindFimTokens(FakeTokenizer({"<|im_end|>"})).has_value());
  EXPECT_TRUE(FindFimTokens(FakeTokenizer({"<fim_prefix>", "<fim_suffix>", "<fim_middle>"})));
}

TEST(Fim, PartsStandInTheFamilysOrder) {
  const Ids lead = {1}, prefix = {10, 11}, suffix = {20};
  EXPECT_EQ(
      MakeFimPrompt({.prefix = 7, .suffix = 8, .middle = 9, .ends = {}}, lead, prefix, suffix),
      Ids({1, 7, 10, 11, 8, 20, 9}));
  EXPECT_EQ(
      MakeFimPrompt({.prefix = 7, .suffix = 8, .middle = -1, .ends = {}}, lead, prefix, suffix),
      Ids({1, 8, 20, 7, 10, 11}));
}

TEST(Fim, ASuffixBecomesAMarkedPromptWhoseMarksUsersCannotForge) {
  const ServedModel model =
      ModelWith({"<s>", "<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>"}, 256);
  const auto text = Read(model, R"("prompt":"a<fim_middle>","suffix":"b","stop_token_ids":[1])");
  ASSERT_TRUE(text.has_value()) << text.error().message;
  Ids expected = {256, 257, 'a'};
  for (const char c : std::string_view("<fim_middle>")) expected.push_back(c);
  expected.insert(expected.end(), {258, 'b', 259});
  EXPECT_EQ(text->prompts[0]->ids, expected);
  EXPECT_EQ(text->fields.stop_ids, Ids({1, 260}));
  const auto ids = Read(model, R"("prompt":[[65],"B"],"suffix":"b","add_special_tokens":false)");
  ASSERT_TRUE(ids.has_value()) << ids.error().message;
  EXPECT_EQ(ids->prompts[0]->ids, Ids({257, 'A', 258, 'b', 259}));
  EXPECT_EQ(ids->prompts[1]->ids, Ids({257, 'B', 258, 'b', 259}));
  const auto echo = Read(model, R"("prompt":"a","suffix":"b","echo":true)");
  EXPECT_EQ(echo->prompts[0]->text, "a");
}

TEST(Fim, AnEmptySuffixIsNone) {
  const ServedModel model = ModelWith({"<fim_prefix>", "<fim_suffix>", "<fim_middle>"});
  EXPECT_EQ(Read(model, R"("prompt":"a","suffix":"")")->prompts[0]->ids, Ids({'a'}));
  EXPECT_EQ(Read(model, R"("prompt":"a","suffix":null)")->prompts[0]->ids, Ids({'a'}));
  EXPECT_TRUE(Read(testing::FakeServedModel(), R"("prompt":"a","suffix":"")").has_value());
}

TEST(Fim, AModelWithoutTheTokensSaysSo) {
  const auto refused = Read(testing::FakeServedModel(), R"("prompt":"a","suffix":"b")");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().param, "suffix");
  EXPECT_EQ(refused.error().code, "unsupported_parameter");
  EXPECT_EQ(Read(testing::FakeServedModel(), R"("prompt":"a","suffix":3)").error().param, "suffix");
}

}  // namespace
}  // namespace tessera::server::openai
