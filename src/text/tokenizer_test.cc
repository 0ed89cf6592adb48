// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "support/fixtures.h"
#include "text/limits.h"
#include "text/test_vocabularies.h"

namespace tessera::text {
namespace {

using ::testing::HasSubstr;

std::string TinyJson() {
  return testing::ReadAll(testing::Shared("fixtures/tiny_llama/hf/tokenizer.json"));
}

std::shared_ptr<const Tokenizer> Tiny() {
  static const auto tokenizer = Tokenizer::FromJson(TinyJson()).value();
  return tokenizer;
}

Status FromJsonStatus(std::string_view json) {
  return StatusOf(Tokenizer::FromJson(json));
}

TEST(Tokenizer, MalformedJsonGivesOneClearError) {
  for (
      const std::string_view json :
      {"", "x", "[]", "{}", "null", R"({"version":"2.0"})", R"({"version":"1.0"})",
       R"({"version":"1.0","model":7})", R"({"version":"1.0","model":{"type":"Nothing"}})",
       R"({"version":"1.0","model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}})",
       R"({"version":"1.0","decoder":7,"model":{"type":"BPE","vocab":{},"merges":[]}})",
       R"({"version":"1.0","pre_tokenizer":{"type":"Split","pattern":{"Regex":"("},"behavior":"Isolated",)"
       R"("invert":false},"model":{"type":"BPE","vocab":{},"merges":[]}})"}) {
    const Status status = FromJsonStatus(json);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << json;
    EXPECT_THAT(status.message(), HasSubstr("tokenizer.json")) << json;
    EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
  }
}

TEST(Tokenizer, EveryPrefixOfAFileIsRefusedWithoutACrash) {
  const std::string json = TinyJson();
  for (size_t size = 0; size + 1 < json.size(); size += 97) {
    EXPECT_FALSE(FromJsonStatus(std::string_view(json).substr(0, size)).ok()) << size;
  }
}

TEST(Tokenizer, DeepNestingIsRefusedWithoutACrash) {
  for (const int depth : {100, 1000, 1000000}) {
    const std::string open(depth, '[');
    EXPECT_FALSE(FromJsonStatus(open).ok());
    std::string nested = R"({"version":"1.0","decoder":)";
    for (int i = 0; i < depth; ++i) nested += R"({"type":"Sequence","decoders":[)";
    EXPECT_FALSE(FromJsonStatus(nested).ok());
  }
}

TEST(Tokenizer, InvalidUtf8IsRefusedWithItsOffset) {
  EXPECT_THAT(FromJsonStatus("{\"a\xff\"}").message(), HasSubstr("offset 3"));
  const auto ids = Tiny()->Encode("ab\xc3", {});
  ASSERT_FALSE(ids.has_value());
  EXPECT_EQ(ids.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(ids.error().message(), HasSubstr("offset 2"));
}

TEST(Tokenizer, TwoTokensOfOneIdAreRefused) {
  const Status status = FromJsonStatus(
      R"({"version":"1.0","model":{"type":"BPE","vocab":{"a":0,"b":0},"merges":[]}})");
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("share"));
}

TEST(Tokenizer, LimitOfIds) {
  for (const int64_t id : {kMaxTokenId - 1, kMaxTokenId, kMaxTokenId + 1, int64_t{4294967295}}) {
    const auto tokenizer = Tokenizer::FromJson(fmt::format(
        R"({{"version":"1.0","model":{{"type":"BPE","vocab":{{"a":{}}},"merges":[]}}}})", id));
    EXPECT_EQ(tokenizer.has_value(), id <= kMaxTokenId) << id;
    if (tokenizer.has_value()) {
      EXPECT_EQ((*tokenizer)->vocab_size(), id + 1);
      EXPECT_EQ((*tokenizer)->TokenText(0), "");
    } else {
      EXPECT_EQ(tokenizer.error().code(), Code::kResourceExhausted);
    }
  }
}

TEST(Tokenizer, LimitOfTextBytes) {
  // A vocabulary that has none of the text's characters is the cheapest.
  const auto tokenizer =
      Tokenizer::FromJson(R"({"version":"1.0","model":{"type":"BPE","vocab":{"a":0},"merges":[]}})")
          .value();
  for (const uint64_t size : {kMaxEncodeBytes - 1, kMaxEncodeBytes, kMaxEncodeBytes + 1}) {
    const auto ids = tokenizer->Encode(std::string(size, 'b'), {});
    EXPECT_EQ(ids.has_value(), size <= kMaxEncodeBytes) << size;
    if (!ids.has_value()) {
      EXPECT_EQ(ids.error().code(), Code::kResourceExhausted);
    }
  }
}

TEST(Tokenizer, LimitOfJsonBytes) {
  std::string json = TinyJson();
  for (const uint64_t size :
       {kMaxTokenizerJsonBytes - 1, kMaxTokenizerJsonBytes, kMaxTokenizerJsonBytes + 1}) {
    json.resize(size, ' ');
    const Status status = FromJsonStatus(json);
    EXPECT_EQ(status.ok(), size <= kMaxTokenizerJsonBytes) << size << " " << status.ToString();
    if (!status.ok()) {
      EXPECT_EQ(status.code(), Code::kResourceExhausted);
    }
  }
}

TEST(Tokenizer, LimitOfDecodedTokens) {
  for (const uint64_t size : {kMaxDecodeTokens - 1, kMaxDecodeTokens, kMaxDecodeTokens + 1}) {
    // Special tokens are left out, so the text stays empty.
    const std::vector<TokenId> ids(size, Tiny()->FindToken("<|begin_of_text|>"));
    const auto text = Tiny()->Decode(ids, true);
    EXPECT_EQ(text.has_value(), size <= kMaxDecodeTokens) << size;
    if (!text.has_value()) {
      EXPECT_EQ(text.error().code(), Code::kResourceExhausted);
    }
  }
}

TEST(Tokenizer, TruncationAndPaddingOfTheFileAreIgnored) {
  std::string json = TinyJson();
  const auto replace = [&json](std::string_view from, std::string_view to) {
    const size_t at = json.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    json.replace(at, from.size(), to);
  };
  replace(
      R"("truncation": null)",
      R"("truncation": {"direction":"Right","max_length":3,"strategy":"LongestFirst","stride":0})");
  replace(R"("padding": null)",
          R"("padding": {"strategy":{"Fixed":16},"direction":"Right","pad_to_multiple_of":null,)"
          R"("pad_id":0,"pad_type_id":0,"pad_token":"!"})");
  const auto tokenizer = Tokenizer::FromJson(json);
  ASSERT_TRUE(tokenizer.has_value()) << StatusOf(tokenizer).ToString();
  const std::string text = "the boat is rowed home";
  EXPECT_EQ((*tokenizer)->Encode(text, {}).value(), Tiny()->Encode(text, {}).value());
}

TEST(Tokenizer, IdsOutsideTheVocabularyAreErrors) {
  const auto size = static_cast<TokenId>(Tiny()->vocab_size());
  ASSERT_EQ(size, 512);
  for (const TokenId id : {-1, size, size + 1, INT32_MAX, INT32_MIN}) {
    const auto text = Tiny()->Decode(std::vector<TokenId>{0, id}, true);
    ASSERT_FALSE(text.has_value()) << id;
    EXPECT_EQ(text.error().code(), Code::kInvalidArgument);
    EXPECT_THAT(text.error().message(), HasSubstr(std::to_string(id)));
    const auto stream = Detokenizer::Make(Tiny(), true);
    EXPECT_EQ(StatusOf(stream->Push(id)).code(), Code::kInvalidArgument);
    EXPECT_EQ(Tiny()->TokenText(id), "");
    EXPECT_EQ(Tiny()->TokenBytes(id), "");
    EXPECT_FALSE(Tiny()->IsSpecial(id));
  }
  EXPECT_TRUE(Tiny()->Decode(std::vector<TokenId>{size - 1}, false).has_value());
}

TEST(Tokenizer, KnowsItsTokens) {
  const TokenId eot = Tiny()->FindToken("<|eot_id|>");
  EXPECT_EQ(eot, 510);
  EXPECT_TRUE(Tiny()->IsSpecial(eot));
  EXPECT_EQ(Tiny()->TokenText(eot), "<|eot_id|>");
  EXPECT_EQ(Tiny()->TokenBytes(eot), "<|eot_id|>");
  const TokenId word = Tiny()->FindToken("Ġthe");
  ASSERT_GE(word, 0);
  EXPECT_FALSE(Tiny()->IsSpecial(word));
  EXPECT_EQ(Tiny()->TokenText(word), "Ġthe");
  EXPECT_EQ(Tiny()->TokenBytes(word), " the");
  EXPECT_EQ(Tiny()->FindToken("no such token"), -1);
  EXPECT_EQ(Tiny()->FindToken("\xff"), -1);
}

TEST(Tokenizer, BytesOfAllTokensTogetherAreTheText) {
  const std::string text = " naïve 水 🌊 don't\n\n  3.14";
  for (const std::string& family : NpmFamilies()) {
    const auto tokenizer = NpmTokenizer(family);
    ASSERT_NE(tokenizer, nullptr);
    std::string bytes;
    const auto ids = tokenizer->Encode(text, {.add_special = false}).value();
    for (const TokenId id : ids) {
      bytes += tokenizer->TokenBytes(id);
    }
    // Llama 2 puts a space before every text; the decoder takes it away again.
    EXPECT_EQ(bytes, family == "llama2" ? " " + text : text) << family;
  }
}

TEST(Tokenizer, SpecialTokensInTextStayTextWhenAsked) {
  const EncodeOptions as_text{.add_special = true, .parse_special = false};
  for (const std::string& family : NpmFamilies()) {
    const auto tokenizer = NpmTokenizer(family);
    ASSERT_NE(tokenizer, nullptr);
    const std::vector<TokenId> around = tokenizer->Encode("", {}).value();
    int specials = 0;
    for (TokenId id = 0; id < tokenizer->vocab_size(); ++id) {
      if (!tokenizer->IsSpecial(id)) continue;
      if (++specials > 40) break;
      const std::string text = "x" + tokenizer->TokenText(id) + "y";
      const auto ids = tokenizer->Encode(text, as_text).value();
      const std::vector<TokenId> inner(ids.begin() + static_cast<ptrdiff_t>(around.size()),
                                       ids.end());
      EXPECT_EQ(std::count(inner.begin(), inner.end(), id), 0) << family << " " << text;
      EXPECT_EQ(tokenizer->Decode(inner, false).value(), text) << family;
      // BOS is still there.
      EXPECT_TRUE(std::equal(around.begin(), around.end(), ids.begin())) << family;
      const auto parsed = tokenizer->Encode(text, {}).value();
      EXPECT_EQ(
          std::count(parsed.begin() + static_cast<ptrdiff_t>(around.size()), parsed.end(), id), 1)
          << family << " " << text;
    }
    EXPECT_GT(specials, 0) << family;
  }
}

TEST(Tokenizer, ChatMarkersThatTheFileForgetsToMarkStayTextToo) {
  const auto tokenizer = NpmTokenizer("deepseek_v3");
  ASSERT_NE(tokenizer, nullptr);
  const TokenId user = tokenizer->FindToken("<｜User｜>");
  ASSERT_GE(user, 0);
  ASSERT_FALSE(tokenizer->IsSpecial(user));
  const auto ids =
      tokenizer->Encode("<｜User｜>", {.add_special = false, .parse_special = false}).value();
  EXPECT_EQ(std::count(ids.begin(), ids.end(), user), 0);
}

TEST(Tokenizer, OtherAddedTokensAreRecognisedWithTheirIds) {
  const auto tokenizer = NpmTokenizer("qwen3");
  ASSERT_NE(tokenizer, nullptr);
  const TokenId think = tokenizer->FindToken("<think>");
  ASSERT_GE(think, 0);
  const auto ids =
      tokenizer->Encode("<think><|im_end|>", {.add_special = false, .parse_special = false})
          .value();
  ASSERT_FALSE(ids.empty());
  EXPECT_EQ(ids.front(), think);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), tokenizer->FindToken("<|im_end|>")), 0);
}

TEST(Tokenizer, ManyThreadsEncodeAlike) {
  const std::string text = "The ferry leaves at nine; bring rope. 水がないと、船は出ない。";
  const auto tokenizer = NpmTokenizer("llama3_1");
  ASSERT_NE(tokenizer, nullptr);
  const auto expected = tokenizer->Encode(text, {}).value();
  std::vector<std::thread> threads;
  std::atomic<int> equal = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        const auto ids = tokenizer->Encode(text, {});
        const auto back = tokenizer->Decode(*ids, true);
        if (*ids == expected && *back == text) ++equal;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, 200);
}

TEST(Tokenizer, HostilePatternsEndAsErrors) {
  const std::string json =
      R"({"version":"1.0","pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a+)+$"},)"
      R"("behavior":"Isolated","invert":false},"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":[]}})";
  const auto tokenizer = Tokenizer::FromJson(json);
  ASSERT_TRUE(tokenizer.has_value()) << StatusOf(tokenizer).ToString();
  const auto ids = (*tokenizer)->Encode(std::string(40, 'a') + "b", {});
  ASSERT_FALSE(ids.has_value());
  EXPECT_EQ(ids.error().code(), Code::kResourceExhausted) << ids.error().ToString();
}

}  // namespace
}  // namespace tessera::text
