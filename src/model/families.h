// SPDX-License-Identifier: Apache-2.0
//
// Family: what the config of a model does not say because its architecture's name says it. Each
// family is one constant in families/NAME.cc; kinds of models that differ in values only (SmolLM2
// is a llama, Nemo a mistral) need none. Sources: the published configs and, for what a key means
// or defaults to, the configuration documentation of Hugging Face transformers and the GGUF
// specification.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "formats/parameter_index.h"
#include "model/model_config.h"
#include "model/weight_names.h"

namespace tessera::model {

/// How the keys `sliding_window`, `use_sliding_window`, `max_window_layers`, `layer_types` say
/// which layers have a window.
enum class WindowRule : uint8_t {
  kNone,       // The family has none: a window in the config is refused.
  kAllLayers,  // `sliding_window` holds for every layer; `default_window` when the key is absent.
  kOptIn,      // Only with `use_sliding_window`: layers from `max_window_layers` on.
};

struct Family {
  std::string_view name;
  std::span<const std::string_view> model_types;         // config.json "model_type"
  std::span<const std::string_view> hf_architectures;    // config.json "architectures"
  std::span<const std::string_view> gguf_architectures;  // "general.architecture"; may be empty
  const WeightNames* hf_names = &kHfNames;
  const WeightNames* gguf_names = &kGgufNames;

  // Computation.
  graph::RopeStyle gguf_rope_style = graph::RopeStyle::kHalf;  // Hugging Face files: always kHalf.
  bool qkv_bias = false;  // q, k and v always have a bias, the output projection never.
  bool qk_norm = false;
  bool has_attention_bias_key = false;  // `attention_bias` adds biases to q, k, v and output.
  bool has_mlp_bias_key = false;        // `mlp_bias` adds biases to gate, up and down.
  WindowRule window = WindowRule::kNone;
  int64_t default_window = 0;

  // What an absent key means in config.json. Sizes have no default, except:
  bool kv_heads_default_to_heads = false;
  double default_norm_eps = 1e-6;
  double default_theta = 10000;
  int64_t default_context = 0;  // 0 = must be given
  /// 0 = hidden / heads.
  int64_t default_head_dim = 0;
};

/// All families, in no particular order.
std::span<const Family* const> Families();
/// Null when unknown.
const Family* FindFamily(std::string_view name);
const Family* FindFamilyByModelType(std::string_view model_type);
const Family* FindFamilyByGgufArchitecture(std::string_view architecture);
/// "llama, mistral, qwen2, qwen3": for messages.
std::string FamilyNames();

/// Weights under GGUF's names beside a config.json: then q and k are stored as GGUF has them, too.
void UseNamesOf(const formats::ParameterIndex& index, ModelConfig& config);

}  // namespace tessera::model
