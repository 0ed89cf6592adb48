// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "text/tokenizer.h"

namespace tessera::text {
namespace {

using ::testing::HasSubstr;

TEST(Gguf, UnknownModelsAndPreTokenizersAreRefusedByName) {
  const std::vector<std::string> tokens = {"a", "b", "ab"};
  const std::vector<std::string> merges = {"a b"};
  GgufVocabulary v;
  v.tokens = tokens;
  v.merges = merges;
  for (const auto& [model, pre, name] : {std::tuple{"rwkv", "", "rwkv"},
                                         {"bert", "", "bert"},
                                         {"gpt2", "someday", "someday"},
                                         {"gpt2", "", "tokenizer.ggml.pre"}}) {
    v.model = model;
    v.pre = pre;
    const Status status = StatusOf(Tokenizer::FromGguf(v));
    EXPECT_EQ(status.code(), Code::kUnimplemented) << model;
    EXPECT_THAT(status.message(), HasSubstr(name));
  }
  v.model = "gpt2";
  v.pre = "gpt-2";
  EXPECT_TRUE(StatusOf(Tokenizer::FromGguf(v)).ok());
}

TEST(Gguf, WrongMetadataIsRefusedByKey) {
  const std::vector<std::string> tokens = {"a", "b", "ab"};
  const std::vector<std::string> merges = {"a b"};
  const std::vector<std::string> bad_merges = {"a c"};
  const std::vector<std::string> one = {"a"};
  const std::vector<std::string> twice = {"a", "b", "a"};
  const std::vector<std::string> not_utf8 = {"a", "b\xff", "c"};
  const std::vector<float> scores = {0.f, 1.f};
  const auto refused = [&](auto change, std::string_view name) {
    GgufVocabulary v;
    v.model = "gpt2";
    v.pre = "gpt-2";
    v.tokens = tokens;
    v.merges = merges;
    change(v);
    const Status status = StatusOf(Tokenizer::FromGguf(v));
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << name;
    EXPECT_THAT(status.message(), HasSubstr(name));
  };
  refused([&](GgufVocabulary& v) { v.tokens = {}; }, "tokens is empty");
  refused([&](GgufVocabulary& v) { v.tokens = twice; }, "\"a\"");
  refused([&](GgufVocabulary& v) { v.tokens = not_utf8; }, "tokens[1]");
  refused([&](GgufVocabulary& v) { v.merges = {}; }, "merges");
  refused([&](GgufVocabulary& v) { v.merges = bad_merges; }, "merges[0]");
  refused([&](GgufVocabulary& v) { v.merges = one; }, "merges[0]");
  refused([&](GgufVocabulary& v) { v.scores = scores; }, "scores");
  refused([&](GgufVocabulary& v) { v.model = "llama"; }, "scores");
  refused([&](GgufVocabulary& v) { v.add_bos = true; }, "bos_token_id");
  refused(
      [&](GgufVocabulary& v) {
        v.add_eos = true;
        v.eos_id = 3;
      },
      "eos_token_id is 3");
}

}  // namespace
}  // namespace tessera::text
