// SPDX-License-Identifier: Apache-2.0
//
// GGUF metadata that llama.cpp's converters write, and what is refused of it.
#include "model/gguf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/index_for_test.h"

namespace tessera::model {
namespace {

using ::tessera::testing::EntryOf;
using ::testing::HasSubstr;

using Items = std::vector<std::pair<std::string, formats::MetadataValue>>;

/// Keys of a small model of that architecture; `changes` replace or add, and an empty string
/// removes.
formats::Metadata Keys(const std::string& architecture, const Items& changes = {}) {
  Items items = {
      {"general.architecture", architecture},
      {"general.type", std::string("model")},
      {"general.file_type", uint32_t{1}},
      {architecture + ".block_count", uint32_t{2}},
      {architecture + ".context_length", uint32_t{512}},
      {architecture + ".embedding_length", uint32_t{64}},
      {architecture + ".feed_forward_length", uint32_t{128}},
      {architecture + ".attention.head_count", uint32_t{4}},
      {architecture + ".attention.head_count_kv", uint32_t{2}},
      {architecture + ".attention.layer_norm_rms_epsilon", 1e-5F},
      {architecture + ".rope.freq_base", 5e5F},
      {"tokenizer.ggml.model", std::string("gpt2")},
  };
  for (const auto& change : changes) {
    std::erase_if(items, [&](const auto& item) { return item.first == change.first; });
    const auto* text = std::get_if<std::string>(&change.second);
    if (text == nullptr || !text->empty()) items.push_back(change);
  }
  formats::Metadata metadata;
  for (auto& [key, value] : items) EXPECT_TRUE(metadata.Add(key, value).ok());
  return metadata;
}

Result<ModelConfig> Read(const std::string& architecture, const Items& changes = {},
                         std::vector<formats::ParameterEntry> more = {}) {
  more.push_back(EntryOf("token_embd.weight", {1000, 64}));
  return ReadGgufConfig(testing::MakeIndex(Keys(architecture, changes), std::move(more)));
}

TEST(GgufConfig, ReadsALlama) {
  const Result<ModelConfig> config =
      Read("llama", {{"llama.rope.dimension_count", uint32_t{16}}, {"llama.vocab_size", 1000}});
  ASSERT_TRUE(config.has_value()) << config.error().ToString();
  EXPECT_EQ(config->family, "llama");
  EXPECT_EQ(config->naming, Naming::kGguf);
  EXPECT_EQ(config->layers, 2);
  EXPECT_EQ(config->hidden, 64);
  EXPECT_EQ(config->vocab_size, 1000);
  EXPECT_EQ(config->context_length, 512);
  EXPECT_EQ(config->norm_eps, static_cast<double>(1e-5F));
  EXPECT_EQ(config->attention.heads, 4);
  EXPECT_EQ(config->attention.kv_heads, 2);
  EXPECT_EQ(config->attention.head_dim, 16);
  EXPECT_EQ(config->attention.scale, 0.25);
  EXPECT_EQ(config->rope.theta, 5e5);
  EXPECT_EQ(config->rope.rotary_dim, 16);
  EXPECT_EQ(config->rope.style, graph::RopeStyle::kInterleaved);
  EXPECT_TRUE(config->embedding.tied);
}

TEST(GgufConfig, SeesInTheTensorsWhatKeysDoNotSay) {
  const auto untied = Read("llama", {}, {EntryOf("output.weight", {1000, 64})});
  EXPECT_FALSE(untied->embedding.tied);
  EXPECT_FALSE(untied->attention.qkv_bias);
  const auto biased = Read("llama", {}, {EntryOf("blk.0.attn_q.bias", {64})});
  EXPECT_TRUE(biased->attention.qkv_bias);
  EXPECT_FALSE(biased->attention.output_bias);
}

TEST(GgufConfig, ReadsQwens) {
  const auto qwen2 = Read("qwen2");
  ASSERT_TRUE(qwen2.has_value()) << qwen2.error().ToString();
  EXPECT_TRUE(qwen2->attention.qkv_bias);
  EXPECT_EQ(qwen2->rope.style, graph::RopeStyle::kHalf);
  const auto qwen3 = Read("qwen3", {{"qwen3.attention.key_length", uint32_t{32}},
                                    {"qwen3.attention.value_length", uint32_t{32}}});
  ASSERT_TRUE(qwen3.has_value()) << qwen3.error().ToString();
  EXPECT_TRUE(qwen3->attention.qk_norm);
  EXPECT_EQ(qwen3->attention.head_dim, 32);
  EXPECT_EQ(qwen3->rope.rotary_dim, 32);
}

TEST(GgufConfig, ReadsRopeScaling) {
  EXPECT_EQ(Read("llama", {{"llama.rope.scaling.type", std::string("linear")},
                           {"llama.rope.scaling.factor", 4.0F}})
                ->rope.scaling,
            RopeScaling(LinearRopeScaling{4}));
  EXPECT_EQ(Read("llama", {{"llama.rope.scale_linear", 2.0F}})->rope.scaling,
            RopeScaling(LinearRopeScaling{2}));
  const auto yarn = Read("qwen2", {{"qwen2.rope.scaling.type", std::string("yarn")},
                                   {"qwen2.rope.scaling.factor", 4.0F},
                                   {"qwen2.rope.scaling.original_context_length", uint32_t{128}}});
  ASSERT_TRUE(yarn.has_value()) << yarn.error().ToString();
  EXPECT_NEAR(std::get<YarnRopeScaling>(yarn->rope.scaling).attention_factor,
              0.1 * std::log(4.0) + 1, 1e-15);
}

TEST(GgufConfig, ReadsRopeDivisorsFromTheirTensor) {
  const std::vector<float> divisors = {1, 1, 1, 1, 2, 4, 8, 8};
  formats::ParameterIndex index;
  formats::SourceFile file;
  file.metadata = Keys("llama");
  file.bytes = std::as_bytes(std::span(divisors));
  index.AddFile(std::move(file));
  ASSERT_TRUE(index.Add(EntryOf("token_embd.weight", {1000, 64})).ok());
  ASSERT_TRUE(index.Add(EntryOf("rope_freqs.weight", {8})).ok());
  const Result<ModelConfig> config = ReadGgufConfig(index);
  ASSERT_TRUE(config.has_value()) << config.error().ToString();
  EXPECT_EQ(config->rope.scaling, RopeScaling(RopeDivisors{{1, 1, 1, 1, 2, 4, 8, 8}}));
  EXPECT_THAT(StatusOf(Read("llama", {}, {EntryOf("rope_freqs.weight", {7})})).ToString(),
              HasSubstr("rope_freqs.weight has shape [7], expected [8]"));
}

TEST(GgufConfig, RefusesByNameWhatItDoesNotKnow) {
  struct Refusal {
    Items changes;
    Code code;
    const char* expect;
  };
  const Refusal refusals[] = {
      {{{"general.architecture", std::string("gemma3")}},
       Code::kUnimplemented,
       "'general.architecture' is 'gemma3', which is not supported; supported are llama, qwen2"},
      {{{"general.architecture", std::string()}}, Code::kNotFound, "general.architecture"},
      {{{"general.type", std::string("adapter")}}, Code::kUnimplemented, "'adapter'"},
      {{{"llama.attention.temperature_scale", 0.1F}},
       Code::kUnimplemented,
       "unknown key 'llama.attention.temperature_scale'"},
      {{{"llama.expert_count", uint32_t{8}}}, Code::kUnimplemented, "'llama.expert_count' is 8"},
      {{{"llama.logit_scale", 0.5F}}, Code::kUnimplemented, "'llama.logit_scale' is 0.5"},
      {{{"llama.attention.sliding_window", uint32_t{128}}},
       Code::kUnimplemented,
       "'attention.sliding_window' is 128"},
      {{{"llama.attention.value_length", uint32_t{8}}}, Code::kUnimplemented, "value_length' 8"},
      {{{"llama.attention.causal", false}}, Code::kUnimplemented, "causal' is false"},
      {{{"llama.rope.scaling.type", std::string("longrope")}},
       Code::kUnimplemented,
       "'rope.scaling.type' is 'longrope'"},
      {{{"llama.rope.scaling.type", std::string("yarn")}},
       Code::kNotFound,
       "original_context_length"},
      {{{"llama.block_count", std::string()}}, Code::kNotFound, "llama.block_count"},
      {{{"llama.block_count", std::string("two")}}, Code::kInvalidArgument, "llama.block_count"},
      {{{"llama.block_count", uint32_t{0}}}, Code::kInvalidArgument, "layers is 0"},
      {{{"llama.attention.head_count", uint32_t{0}}}, Code::kInvalidArgument, "head_count' is 0"},
      {{{"llama.attention.head_count", std::vector<uint32_t>{4, 2}}},
       Code::kInvalidArgument,
       "llama.attention.head_count"},
      {{{"llama.attention.head_count_kv", uint32_t{3}}}, Code::kInvalidArgument, "kv_heads 3"},
      {{{"llama.rope.dimension_count", uint32_t{17}}}, Code::kInvalidArgument, "is 17"},
      {{{"llama.rope.dimension_count", uint32_t{7}}}, Code::kInvalidArgument, "rotary_dim is 7"},
      {{{"llama.vocab_size", uint32_t{999}}}, Code::kInvalidArgument, "has 1000 rows"},
      {{{"llama.rope.freq_base", std::nanf("")}}, Code::kInvalidArgument, "rope.theta is nan"},
  };
  for (const Refusal& refusal : refusals) {
    const Status status = StatusOf(Read("llama", refusal.changes));
    EXPECT_EQ(status.code(), refusal.code) << refusal.expect << ": " << status.ToString();
    EXPECT_THAT(status.ToString(), HasSubstr(refusal.expect));
  }
}

TEST(GgufConfig, TakesKeysThatChangeNothing) {
  EXPECT_TRUE(Read("llama", {{"llama.expert_count", uint32_t{0}},
                             {"llama.expert_used_count", uint32_t{0}},
                             {"llama.attention.causal", true},
                             {"llama.attention.sliding_window", uint32_t{512}},
                             {"llama.tensor_data_layout", std::string("Meta AI original pth")},
                             {"quantize.imatrix.file", std::string("x")},
                             {"other.block_count", uint32_t{7}}})
                  .has_value());
}

}  // namespace
}  // namespace tessera::model
