// SPDX-License-Identifier: Apache-2.0
//
// Graphs of small configs of every family, and weights that do not fit.
#include "model/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "graph/print.h"
#include "graph/verify.h"
#include "model/index_for_test.h"
#include "support/golden.h"

namespace tessera::model {
namespace {

using ::tessera::testing::EntryOf;
using ::tessera::testing::IndexOf;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Two layers, hidden 8, two heads of 6 over one KV head, vocabulary 32.
ModelConfig SmallConfig(std::string family) {
  ModelConfig config;
  config.family = std::move(family);
  config.layers = 2;
  config.hidden = 8;
  config.vocab_size = 32;
  config.context_length = 64;
  config.norm_eps = 1e-5;
  config.attention.heads = 2;
  config.attention.kv_heads = 1;
  config.attention.head_dim = 6;
  config.attention.scale = 0.5;
  config.rope.rotary_dim = 6;
  config.ffn.intermediate = 12;
  return config;
}

ModelConfig SmallQwen3() {
  ModelConfig config = SmallConfig("qwen3");
  config.attention.qk_norm = true;
  config.embedding.tied = true;
  return config;
}

graph::Graph MustBuild(const ModelConfig& config) {
  Result<graph::Graph> graph = BuildGraph(config);
  EXPECT_TRUE(graph.has_value()) << StatusOf(graph).ToString();
  return graph.value_or(graph::Graph{});
}

TEST(Build, GraphsAreAsStored) {
  testing::ExpectGolden(graph::PrintGraph(MustBuild(SmallConfig("llama"))), "model/llama.txt");

  ModelConfig mistral = SmallConfig("mistral");
  mistral.attention.window = 16;
  mistral.attention.window_layers = {true, false};
  testing::ExpectGolden(graph::PrintGraph(MustBuild(mistral)), "model/mistral.txt");

  ModelConfig qwen2 = SmallConfig("qwen2");
  qwen2.attention.qkv_bias = true;
  qwen2.naming = Naming::kGguf;
  testing::ExpectGolden(graph::PrintGraph(MustBuild(qwen2)), "model/qwen2_gguf.txt");

  testing::ExpectGolden(graph::PrintGraph(MustBuild(SmallQwen3())), "model/qwen3.txt");
}

TEST(Build, UsesEveryVariationOfTheVocabulary) {
  ModelConfig config = SmallConfig("llama");
  config.attention.softcap = 50;
  config.attention.output_bias = true;
  config.attention.qkv_bias = true;
  config.ffn.bias = true;
  config.ffn.gated = false;
  config.ffn.activation = Activation::kGeluTanh;
  config.embedding.scale = 3;
  config.residual_scale = 0.25;
  config.logit_scale = 0.125;
  config.logit_softcap = 30;
  testing::ExpectGolden(graph::PrintGraph(MustBuild(config)), "model/all_variations.txt");
}

TEST(Build, AcceptsExactlyTheWeightsOfTheModel) {
  const graph::Graph graph = MustBuild(SmallQwen3());
  const Result<graph::Graph> again = BuildGraph(SmallQwen3(), IndexOf(graph));
  ASSERT_TRUE(again.has_value()) << again.error().ToString();
  EXPECT_EQ(*again, graph);
}

TEST(Build, NamesEveryWeightThatDoesNotFit) {
  const graph::Graph graph = MustBuild(SmallConfig("llama"));
  std::vector<formats::ParameterEntry> entries;
  const formats::ParameterIndex complete = IndexOf(graph);
  for (const formats::ParameterEntry& entry : complete.entries()) {
    if (entry.name == "model.layers.1.mlp.up_proj.weight") continue;
    entries.push_back(entry);
    if (entry.name == "lm_head.weight") entries.back().shape = {31, 8};
    if (entry.name == "model.norm.weight") entries.back().dtype = tensor::DType::kComplex64;
  }
  entries.push_back(EntryOf("model.layers.2.mlp.up_proj.weight", {12, 8}));
  const auto index = testing::MakeIndex({}, std::move(entries));
  const Status status = StatusOf(BuildGraph(SmallConfig("llama"), index));
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.ToString(),
              AllOf(HasSubstr("missing weights: model.layers.1.mlp.up_proj.weight"),
                    HasSubstr("lm_head.weight has shape [31,8], expected [32,8]"),
                    HasSubstr("model.norm.weight has type"),
                    HasSubstr("does not use: model.layers.2.mlp.up_proj.weight")));
}

TEST(Build, CountsInsteadOfListingManyWeights) {
  const Status status = StatusOf(BuildGraph(SmallConfig("llama"), formats::ParameterIndex()));
  EXPECT_THAT(status.ToString(), HasSubstr("model.layers.0.self_attn.o_proj.weight and 15 more"));
}

/// The small llama's index with one more entry.
Status WithExtra(const ModelConfig& config, const std::string& name) {
  formats::ParameterIndex index = IndexOf(MustBuild(config));
  EXPECT_TRUE(index.Add(EntryOf(name, {32, 8})).ok());
  return StatusOf(BuildGraph(config, index));
}

TEST(Build, IgnoresOnlyTensorsKnownToBeHarmless) {
  ModelConfig llama = SmallConfig("llama");
  EXPECT_TRUE(WithExtra(llama, "model.layers.0.self_attn.rotary_emb.inv_freq").ok());
  EXPECT_FALSE(WithExtra(llama, "rope_freqs.weight").ok());
  EXPECT_FALSE(WithExtra(llama, "model.layers.0.self_attn.q_proj.bias").ok());
  llama.embedding.tied = true;
  EXPECT_TRUE(WithExtra(llama, "lm_head.weight").ok());
  llama.naming = Naming::kGguf;
  EXPECT_TRUE(WithExtra(llama, "rope_freqs.weight").ok());
  EXPECT_FALSE(WithExtra(llama, "blk.0.attn_q.bias").ok());
  EXPECT_FALSE(WithExtra(llama, "lm_head.weight").ok());
}

TEST(Build, RefusesConfigsOutOfRange) {
  ModelConfig config = SmallConfig("gpt2");
  EXPECT_THAT(StatusOf(BuildGraph(config)).ToString(), HasSubstr("family is 'gpt2'"));
  config = SmallConfig("llama");
  config.attention.window = 8;
  EXPECT_THAT(StatusOf(BuildGraph(config)).ToString(), HasSubstr("window_layers has 0 entries"));
  config = SmallConfig("llama");
  config.rope.scaling = RopeDivisors{{1, 1}};
  EXPECT_THAT(StatusOf(BuildGraph(config)).ToString(), HasSubstr("2 rope divisors, expected 3"));
  config.rope.scaling = RopeDivisors{{1, 1, 0}};
  EXPECT_THAT(StatusOf(BuildGraph(config)).ToString(), HasSubstr("a rope divisor is 0"));
}

}  // namespace
}  // namespace tessera::model
