// SPDX-License-Identifier: Apache-2.0
//
// Published configs are read to what their models are, which the published parameter counts
// confirm; keys we do not know are refused by name.
#include "model/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/limits.h"
#include "model/build.h"
#include "model/families.h"
#include "model/limits.h"
#include "support/fixtures.h"

namespace tessera::model {
namespace {

using ::testing::HasSubstr;

std::string ConfigText(std::string_view name) {
  return testing::ReadAll(testing::SourceDir() / "tests/data/configs" /
                          (std::string(name) + ".json"));
}

ModelConfig Read(std::string_view name) {
  Result<ModelConfig> config = ParseHfConfig(ConfigText(name), name);
  EXPECT_TRUE(config.has_value()) << StatusOf(config).ToString();
  return config.value_or(ModelConfig{});
}

int64_t CountParameters(const ModelConfig& config) {
  const Result<graph::Graph> graph = BuildGraph(config);
  EXPECT_TRUE(graph.has_value()) << StatusOf(graph).ToString();
  if (!graph.has_value()) return 0;
  int64_t count = 0;
  for (const graph::Node& node : graph->nodes) {
    if (node.op == graph::Op::kParameter) count += node.type.dims.elements();
  }
  return count;
}

struct Published {
  const char* name;
  const char* family;
  int64_t parameters;  // As the model cards and safetensors headers say.
  int64_t kv_heads;
  int64_t head_dim;
  int64_t context;
  double theta;
  bool tied;
};

TEST(HfConfig, ReadsPublishedConfigs) {
  const Published models[] = {
      {"llama-7b-v1", "llama", 6738415616, 32, 128, 2048, 1e4, false},
      {"llama-2-7b", "llama", 6738415616, 32, 128, 4096, 1e4, false},
      {"llama-3-8b-instruct", "llama", 8030261248, 8, 128, 8192, 5e5, false},
      {"llama-3.1-8b-instruct", "llama", 8030261248, 8, 128, 131072, 5e5, false},
      {"llama-3.2-1b-instruct", "llama", 1235814400, 8, 64, 131072, 5e5, true},
      {"llama-3.2-1b-transformers5", "llama", 1235814400, 8, 64, 131072, 5e5, true},
      {"llama-3.3-70b-instruct", "llama", 70553706496, 8, 128, 131072, 5e5, false},
      {"smollm2-135m-instruct", "llama", 134515008, 3, 64, 8192, 1e5, true},
      {"mistral-7b-v0.1", "mistral", 7241732096, 8, 128, 32768, 1e4, false},
      {"mistral-7b-instruct-v0.3", "mistral", 7248023552, 8, 128, 32768, 1e6, false},
      {"mistral-nemo-instruct-2407", "mistral", 12247782400, 8, 128, 131072, 1e6, false},
      {"qwen2.5-0.5b-instruct", "qwen2", 494032768, 2, 64, 32768, 1e6, true},
      {"qwen2.5-7b-base", "qwen2", 7615616512, 4, 128, 131072, 1e6, false},
      {"qwen3-0.6b", "qwen3", 596049920, 8, 128, 40960, 1e6, true},
  };
  for (const Published& model : models) {
    SCOPED_TRACE(model.name);
    const ModelConfig config = Read(model.name);
    EXPECT_EQ(config.family, model.family);
    EXPECT_EQ(config.naming, Naming::kHuggingFace);
    EXPECT_EQ(CountParameters(config), model.parameters);
    EXPECT_EQ(config.attention.kv_heads, model.kv_heads);
    EXPECT_EQ(config.attention.head_dim, model.head_dim);
    EXPECT_EQ(config.rope.rotary_dim, model.head_dim);
    EXPECT_EQ(config.rope.style, graph::RopeStyle::kHalf);
    EXPECT_EQ(config.rope.theta, model.theta);
    EXPECT_EQ(config.context_length, model.context);
    EXPECT_EQ(config.embedding.tied, model.tied);
  }
}

TEST(HfConfig, ReadsWhatDistinguishesTheFamilies) {
  const ModelConfig mistral = Read("mistral-7b-v0.1");
  EXPECT_EQ(mistral.attention.window, 4096);
  EXPECT_EQ(mistral.attention.window_layers, std::vector<bool>(32, true));
  EXPECT_FALSE(Read("mistral-7b-instruct-v0.3").attention.window.has_value());
  // 32 heads of 128 are not the hidden size of 5120.
  EXPECT_EQ(Read("mistral-nemo-instruct-2407").hidden, 5120);

  const ModelConfig qwen2 = Read("qwen2.5-0.5b-instruct");
  EXPECT_TRUE(qwen2.attention.qkv_bias);
  EXPECT_FALSE(qwen2.attention.output_bias);
  EXPECT_FALSE(qwen2.attention.window.has_value());
  EXPECT_EQ(qwen2.norm_eps, 1e-6);

  const ModelConfig qwen3 = Read("qwen3-0.6b");
  EXPECT_TRUE(qwen3.attention.qk_norm);
  EXPECT_FALSE(qwen3.attention.qkv_bias);

  const Llama3RopeScaling expected{.factor = 32,
                                   .low_frequency_factor = 1,
                                   .high_frequency_factor = 4,
                                   .original_context = 8192};
  EXPECT_EQ(Read("llama-3.2-1b-instruct").rope.scaling, RopeScaling(expected));
  EXPECT_EQ(Read("llama-2-7b").rope.scaling, RopeScaling(NoRopeScaling{}));
}

TEST(HfConfig, BothSpellingsOfRopeMeanTheSame) {
  EXPECT_EQ(Read("llama-3.2-1b-transformers5"), Read("llama-3.2-1b-instruct"));
}

/// The named config with members replaced or added ("null" removes their effect).
Result<ModelConfig> With(std::string_view name, std::string_view members) {
  json::Object config = json::Parse(ConfigText(name), {}, name)->as_object();
  const json::Value changes =
      json::Parse("{" + std::string(members) + "}", {}, members).value_or(json::Value());
  EXPECT_TRUE(changes.is_object()) << members;
  for (const auto& member : changes.as_object()) {
    config.insert_or_assign(member.key(), member.value());
  }
  return ReadHfConfig(config);
}

struct Refusal {
  const char* base;
  const char* members;
  Code code;
  const char* expect;
};

TEST(HfConfig, RefusesByNameWhatItDoesNotKnow) {
  const Refusal refusals[] = {
      {"llama-2-7b", R"("model_type": "mamba")", Code::kUnimplemented,
       "model_type 'mamba' is not supported; supported are llama, mistral, qwen2, qwen3"},
      {"llama-2-7b", R"("model_type": null)", Code::kInvalidArgument, "model_type"},
      {"llama-2-7b", R"("architectures": ["LlamaForSequenceClassification"])", Code::kUnimplemented,
       "architecture 'LlamaForSequenceClassification'"},
      {"llama-2-7b", R"("attention_multiplier": 0.5)", Code::kUnimplemented,
       "unknown key 'attention_multiplier'"},
      {"llama-2-7b", R"("zeta": 1, "alpha": 2)", Code::kUnimplemented, "'zeta', 'alpha'"},
      {"llama-2-7b", R"("quantization_config": {"bits": 4})", Code::kUnimplemented,
       "'quantization_config.quant_method'"},
      {"llama-2-7b", R"("auto_map": {"AutoModel": "m.M"})", Code::kUnimplemented, "'auto_map'"},
      {"llama-2-7b", R"("pretraining_tp": 2)", Code::kUnimplemented,
       "'pretraining_tp' is 2; only 1 is supported"},
      {"llama-2-7b", R"("rope_interleaved": true)", Code::kUnimplemented, "'rope_interleaved'"},
      {"llama-2-7b", R"("partial_rotary_factor": 0.5)", Code::kUnimplemented,
       "'partial_rotary_factor'"},
      {"llama-2-7b", R"("hidden_act": "relu")", Code::kUnimplemented, "'hidden_act' is 'relu'"},
      {"llama-2-7b", R"("sliding_window": 4096)", Code::kUnimplemented,
       "'sliding_window' is 4096, but model_type 'llama' has no window"},
      {"llama-2-7b", R"("use_sliding_window": true)", Code::kUnimplemented, "'sliding_window'"},
      {"llama-2-7b", R"("hidden_size": null)", Code::kInvalidArgument, "hidden_size"},
      {"llama-2-7b", R"("hidden_size": "4096")", Code::kInvalidArgument, "hidden_size"},
      {"llama-2-7b", R"("hidden_size": 0)", Code::kInvalidArgument, "head_dim"},
      {"llama-2-7b", R"("hidden_size": 4097)", Code::kInvalidArgument, "'head_dim' is 0"},
      {"llama-2-7b", R"("num_attention_heads": 0)", Code::kInvalidArgument,
       "'num_attention_heads' is 0"},
      {"llama-2-7b", R"("num_key_value_heads": 5)", Code::kInvalidArgument,
       "attention.kv_heads 5 does not divide attention.heads 32"},
      {"llama-2-7b", R"("num_hidden_layers": 1000000000)", Code::kInvalidArgument,
       "'num_hidden_layers' is 1000000000"},
      {"llama-2-7b", R"("vocab_size": -1)", Code::kInvalidArgument, "vocab_size is -1"},
      {"llama-2-7b", R"("rms_norm_eps": -1)", Code::kInvalidArgument, "norm_eps is -1"},
      {"llama-2-7b", R"("rope_theta": 0)", Code::kInvalidArgument, "rope.theta is 0"},
      {"llama-2-7b", R"("head_dim": 127)", Code::kInvalidArgument, "rope.rotary_dim is 127"},
      {"llama-2-7b", R"("layer_types": ["full_attention"])", Code::kInvalidArgument,
       "'layer_types' has 1 entries, expected 32"},
      {"llama-2-7b", R"("rope_scaling": {"type": "dynamic", "factor": 2.0})", Code::kUnimplemented,
       "'rope_scaling' has type 'dynamic'"},
      {"llama-2-7b", R"("rope_scaling": {"type": "linear"})", Code::kInvalidArgument, "factor"},
      {"llama-2-7b", R"("rope_scaling": {"type": "linear", "factor": 2, "beta": 1})",
       Code::kUnimplemented, "unknown key 'rope_scaling.beta'"},
      {"llama-2-7b", R"("rope_scaling": {"type": "linear", "rope_type": "yarn", "factor": 2})",
       Code::kInvalidArgument, "type 'linear' and rope_type 'yarn'"},
      {"llama-2-7b", R"("rope_scaling": [1])", Code::kInvalidArgument, "expected an object"},
      {"llama-2-7b", R"("rope_parameters": {}, "rope_scaling": {})", Code::kInvalidArgument,
       "both 'rope_scaling' and 'rope_parameters'"},
      {"llama-3.1-8b-instruct",
       R"("rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4,
          "high_freq_factor": 4, "original_max_position_embeddings": 8192})",
       Code::kInvalidArgument, "high_freq_factor"},
      {"mistral-7b-v0.1", R"("attention_bias": true)", Code::kUnimplemented, "'attention_bias'"},
      {"mistral-7b-v0.1", R"("num_key_value_heads": "8")", Code::kInvalidArgument,
       "num_key_value_heads"},
      {"mistral-7b-v0.1", R"("sliding_window": 0)", Code::kInvalidArgument, "window is 0"},
      {"mistral-7b-instruct-v0.3", R"("num_experts_per_tok": 2)", Code::kUnimplemented,
       "'num_experts_per_tok'"},
      {"qwen2.5-0.5b-instruct", R"("use_mrope": true)", Code::kUnimplemented, "'use_mrope'"},
      {"qwen2.5-0.5b-instruct", R"("mlp_bias": true)", Code::kUnimplemented, "'mlp_bias'"},
      {"qwen3-0.6b", R"("qk_layernorm": true)", Code::kUnimplemented, "'qk_layernorm'"},
      {"smollm2-135m-instruct", R"("no_rope_layers": [1, 0])", Code::kUnimplemented,
       "'no_rope_layers'"},
  };
  for (const Refusal& refusal : refusals) {
    const Result<ModelConfig> config = With(refusal.base, refusal.members);
    ASSERT_FALSE(config.has_value()) << refusal.members;
    EXPECT_EQ(config.error().code(), refusal.code) << config.error().ToString();
    EXPECT_THAT(config.error().ToString(), HasSubstr(refusal.expect));
  }
}

TEST(HfConfig, EveryFamilyRefusesAnUnknownKeyAndTakesItWhenNull) {
  for (const char* name :
       {"llama-2-7b", "mistral-7b-v0.1", "qwen2.5-0.5b-instruct", "qwen3-0.6b"}) {
    EXPECT_THAT(StatusOf(With(name, R"("final_logit_softcapping": 30.0)")).ToString(),
                HasSubstr("unknown key 'final_logit_softcapping'"));
    EXPECT_TRUE(With(name, R"("final_logit_softcapping": null)").has_value());
  }
}

TEST(HfConfig, ReadsVariationsThatFewRepositoriesHave) {
  EXPECT_TRUE(With("llama-2-7b", R"("attention_bias": true)")->attention.output_bias);
  EXPECT_TRUE(With("llama-2-7b", R"("mlp_bias": true)")->ffn.bias);
  EXPECT_EQ(With("llama-2-7b", R"("hidden_act": "gelu_pytorch_tanh")")->ffn.activation,
            Activation::kGeluTanh);
  EXPECT_EQ(
      With("llama-2-7b", R"("rope_scaling": {"type": "linear", "factor": 4.0})")->rope.scaling,
      RopeScaling(LinearRopeScaling{4}));
  EXPECT_TRUE(With("llama-2-7b", R"("partial_rotary_factor": 1.0)").has_value());
  // A window by layer types, and one that starts at a layer.
  const std::string types =
      R"("sliding_window": 128, "use_sliding_window": true, "layer_types": [)";
  std::string list;
  for (int i = 0; i < 24; ++i) {
    list +=
        std::string(i == 0 ? "" : ",") + (i % 2 ? "\"full_attention\"" : "\"sliding_attention\"");
  }
  const Result<ModelConfig> mixed = With("qwen2.5-0.5b-instruct", types + list + "]");
  ASSERT_TRUE(mixed.has_value()) << mixed.error().ToString();
  EXPECT_TRUE(mixed->attention.window_layers[0]);
  EXPECT_FALSE(mixed->attention.window_layers[1]);
  const Result<ModelConfig> from =
      With("qwen2.5-0.5b-instruct", R"("use_sliding_window": true, "max_window_layers": 21)");
  EXPECT_FALSE(from->attention.window_layers[20]);
  EXPECT_TRUE(from->attention.window_layers[21]);
}

TEST(HfConfig, YarnStretchesTheContext) {
  const Result<ModelConfig> config = With(
      "qwen2.5-0.5b-instruct",
      R"("rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768})");
  ASSERT_TRUE(config.has_value()) << config.error().ToString();
  EXPECT_EQ(config->context_length, 131072);
  const auto& yarn = std::get<YarnRopeScaling>(config->rope.scaling);
  EXPECT_EQ(yarn.factor, 4);
  EXPECT_NEAR(yarn.attention_factor, 1.1386294361119891, 1e-15);  // 0.1 ln 4 + 1
}

TEST(HfConfig, TakesTextUpToItsLimit) {
  std::string text = ConfigText("llama-2-7b");
  text.resize(kMaxConfigBytes, ' ');
  EXPECT_TRUE(ParseHfConfig(text, "config.json").has_value());
  text += ' ';
  EXPECT_EQ(StatusOf(ParseHfConfig(text, "config.json")).code(), Code::kResourceExhausted);
  EXPECT_THAT(StatusOf(ParseHfConfig("[]", "config.json")).ToString(),
              HasSubstr("config.json is array, expected an object"));
}

TEST(HfConfig, HoldsTheLimitOfLayers) {
  const auto with_layers = [](int64_t n) {
    return With("llama-2-7b", "\"num_hidden_layers\": " + std::to_string(n));
  };
  EXPECT_TRUE(with_layers(kMaxLayers - 1).has_value());
  EXPECT_TRUE(with_layers(kMaxLayers).has_value());
  EXPECT_EQ(StatusOf(with_layers(kMaxLayers + 1)).code(), Code::kInvalidArgument);
}

TEST(CheckConfig, HoldsItsLimits) {
  const auto expect_limit = [](int64_t max, int64_t step, auto set) {
    for (const int64_t value : {max - step, max, max + step}) {
      ModelConfig config = Read("llama-2-7b");
      set(&config, value);
      EXPECT_EQ(CheckConfig(config).code(), value <= max ? Code::kOk : Code::kInvalidArgument)
          << value << " of " << max;
    }
  };
  expect_limit(kMaxHeads, 1, [](ModelConfig* c, int64_t n) {
    c->attention.heads = n;
    c->attention.kv_heads = 1;
  });
  expect_limit(kMaxHeads, 1, [](ModelConfig* c, int64_t n) {
    c->attention.heads = n;
    c->attention.kv_heads = n;
  });
  expect_limit(kMaxWidth, 1, [](ModelConfig* c, int64_t n) { c->attention.head_dim = n; });
  expect_limit(kMaxWidth, 1, [](ModelConfig* c, int64_t n) { c->hidden = n; });
  expect_limit(kMaxWidth, 1, [](ModelConfig* c, int64_t n) { c->ffn.intermediate = n; });
  expect_limit(kMaxVocabulary, 1, [](ModelConfig* c, int64_t n) { c->vocab_size = n; });
  expect_limit(kMaxContext, 1, [](ModelConfig* c, int64_t n) { c->context_length = n; });
  expect_limit(graph::kMaxRotaryDim, 2, [](ModelConfig* c, int64_t n) {
    c->attention.head_dim = kMaxWidth;
    c->rope.rotary_dim = n;
  });
}

}  // namespace
}  // namespace tessera::model
