// SPDX-License-Identifier: Apache-2.0
#include "model/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/families.h"
#include "model/hf_harmless_keys.h"
#include "model/hf_rope.h"
#include "model/key_reader.h"
#include "model/limits.h"
#include "model/quantised/quantisation_config.h"

namespace tessera::model {
namespace {

Result<const Family*> ReadFamily(KeyReader& keys) {
  TESSERA_ASSIGN_OR_RETURN(const std::string type, keys.NeedString("model_type"));
  const Family* family = FindFamilyByModelType(type);
  if (family == nullptr) {
    return Fail(Unimplemented(
        fmt::format("model_type '{}' is not supported; supported are {}", type, FamilyNames())));
  }
  TESSERA_ASSIGN_OR_RETURN(const std::vector<std::string> names, keys.Strings("architectures"));
  for (const std::string& name : names) {
    const auto& known = family->hf_architectures;
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return Fail(
          Unimplemented(fmt::format("architecture '{}' is not supported; model_type '{}' "
                                    "is supported as {}",
                                    name, type, known.front())));
    }
  }
  return family;
}

/// Keys that change the computation for values other than these.
Status CheckFixedKeys(KeyReader& keys) {
  struct Fixed {
    std::string_view key;
    std::string_view value;
    std::string_view why;
  };
  static constexpr Fixed kFixed[] = {
      {"pretraining_tp", "1", "other values slice the projections"},
      {"rope_interleaved", "false", "weights in this layout rotate halves"},
      {"use_mrope", "false", "multimodal positions"},
      {"partial_rotary_factor", "1", "the family rotates whole heads"},
      {"is_encoder_decoder", "false", "a decoder-only model is expected"},
      {"add_cross_attention", "false", "a decoder-only model is expected"},
      {"tie_encoder_decoder", "false", "a decoder-only model is expected"},
      {"pruned_heads", "{}", "heads cannot be removed"},
      {"tf_legacy_loss", "false", "it is no such model"},
  };
  for (const Fixed& fixed : kFixed) {
    TESSERA_RETURN_IF_ERROR(keys.MustEqual(fixed.key, fixed.value, fixed.why));
  }
  // Read by who opens the weights; what cannot be read there is refused before.
  for (const std::string_view key : {"quantization_config", "compression_config"}) keys.Has(key);
  if (keys.Has("auto_map")) {
    return Unimplemented(
        "'auto_map': the model is defined by code of the repository, which is never run");
  }
  return {};
}

/// A bias that the family may have, by its key.
Result<bool> ReadBias(KeyReader& keys, std::string_view key, bool has_key) {
  if (!has_key) {
    TESSERA_RETURN_IF_ERROR(keys.MustEqual(key, "false", "the family has no such bias"));
    return false;
  }
  return keys.Bool(key, false);
}

Result<bool> IsSlidingLayer(const std::string& type) {
  if (type == "sliding_attention") return true;
  if (type == "full_attention") return false;
  return Fail(Unimplemented(fmt::format(
      "'layer_types' holds '{}'; supported are full_attention and sliding_attention", type)));
}

/// `layer_types` where given, else what the other keys say; they need not agree, the list wins, as
/// in transformers.
Status ReadWindowLayers(KeyReader& keys, AttentionConfig& a, int64_t layers, int64_t first_layer) {
  TESSERA_ASSIGN_OR_RETURN(const std::vector<std::string> types, keys.Strings("layer_types"));
  if (!types.empty() && static_cast<int64_t>(types.size()) != layers) {
    return InvalidArgument(
        fmt::format("'layer_types' has {} entries, expected {}", types.size(), layers));
  }
  std::vector<bool> windows(static_cast<size_t>(layers));
  for (size_t i = 0; i < windows.size(); ++i) {
    windows[i] = static_cast<int64_t>(i) >= first_layer;
    if (types.empty()) continue;
    TESSERA_ASSIGN_OR_RETURN(windows[i], IsSlidingLayer(types[i]));
  }
  const bool any = std::find(windows.begin(), windows.end(), true) != windows.end();
  if (any && !a.window) {
    return InvalidArgument("'layer_types' has sliding layers, but there is no 'sliding_window'");
  }
  if (any) {
    a.window_layers = std::move(windows);
  } else {
    a.window.reset();
  }
  return {};
}

Status ReadWindow(const Family& family, KeyReader& keys, AttentionConfig& a, int64_t layers) {
  TESSERA_ASSIGN_OR_RETURN(const int64_t window, keys.Int("sliding_window", family.default_window));
  const bool has_window =
      keys.Has("sliding_window") || (!keys.IsNull("sliding_window") && family.default_window != 0);
  if (has_window) a.window = window;
  TESSERA_ASSIGN_OR_RETURN(const bool opted_in, keys.Bool("use_sliding_window", false));
  TESSERA_ASSIGN_OR_RETURN(const int64_t first, keys.Int("max_window_layers", 28));
  switch (family.window) {
    case WindowRule::kNone:
      if (!has_window && !opted_in) return ReadWindowLayers(keys, a, layers, layers);
      return Unimplemented(fmt::format("'sliding_window' is {}, but model_type '{}' has no window",
                                       window, family.name));
    case WindowRule::kAllLayers:
      return ReadWindowLayers(keys, a, layers, has_window ? 0 : layers);
    case WindowRule::kOptIn:
      if (!opted_in) a.window.reset();
      return ReadWindowLayers(keys, a, layers, a.window ? first : layers);
  }
  return Internal("no such window rule");
}

Status ReadAttention(const Family& family, KeyReader& keys, ModelConfig& config) {
  AttentionConfig& a = config.attention;
  TESSERA_ASSIGN_OR_RETURN(a.heads, keys.NeedInt("num_attention_heads"));
  if (a.heads < 1) {
    return InvalidArgument(fmt::format("'num_attention_heads' is {}, expected >= 1", a.heads));
  }
  // A null means "as many as heads" in every family; only an absent key differs.
  const bool default_is_heads =
      family.kv_heads_default_to_heads || keys.IsNull("num_key_value_heads");
  if (default_is_heads) {
    TESSERA_ASSIGN_OR_RETURN(a.kv_heads, keys.Int("num_key_value_heads", a.heads));
  } else {
    TESSERA_ASSIGN_OR_RETURN(a.kv_heads, keys.NeedInt("num_key_value_heads"));
  }
  const bool divides = config.hidden % a.heads == 0;
  const int64_t by_family = keys.IsNull("head_dim") ? 0 : family.default_head_dim;
  const int64_t fallback = by_family != 0 ? by_family : divides ? config.hidden / a.heads : 0;
  TESSERA_ASSIGN_OR_RETURN(a.head_dim, keys.Int("head_dim", fallback));
  if (a.head_dim < 1) {
    return InvalidArgument(fmt::format(
        "'head_dim' is {} with 'hidden_size' {} and 'num_attention_heads' {}, expected >= 1",
        a.head_dim, config.hidden, a.heads));
  }
  TESSERA_ASSIGN_OR_RETURN(const bool bias,
                           ReadBias(keys, "attention_bias", family.has_attention_bias_key));
  a.qkv_bias = family.qkv_bias || bias;
  a.output_bias = bias;
  a.qk_norm = family.qk_norm;
  a.scale = 1.0 / std::sqrt(static_cast<double>(a.head_dim));
  return ReadWindow(family, keys, a, config.layers);
}

Status ReadFfn(const Family& family, KeyReader& keys, FfnConfig& ffn) {
  TESSERA_ASSIGN_OR_RETURN(ffn.intermediate, keys.NeedInt("intermediate_size"));
  TESSERA_ASSIGN_OR_RETURN(const std::string activation, keys.String("hidden_act", "silu"));
  if (activation == "silu" || activation == "swish") {
    ffn.activation = Activation::kSilu;
  } else if (activation == "gelu_pytorch_tanh" || activation == "gelu_new") {
    ffn.activation = Activation::kGeluTanh;
  } else {
    return Unimplemented(
        fmt::format("'hidden_act' is '{}'; supported are silu and gelu_pytorch_tanh", activation));
  }
  TESSERA_ASSIGN_OR_RETURN(ffn.bias, ReadBias(keys, "mlp_bias", family.has_mlp_bias_key));
  return {};
}

Status ReadSizes(const Family& family, KeyReader& keys, ModelConfig& config) {
  TESSERA_ASSIGN_OR_RETURN(config.layers, keys.NeedInt("num_hidden_layers"));
  if (config.layers < 1 || config.layers > kMaxLayers) {
    // Checked here already: the list of windows is as long.
    return InvalidArgument(
        fmt::format("'num_hidden_layers' is {}, expected 1 to {}", config.layers, kMaxLayers));
  }
  TESSERA_ASSIGN_OR_RETURN(config.hidden, keys.NeedInt("hidden_size"));
  TESSERA_ASSIGN_OR_RETURN(config.vocab_size, keys.NeedInt("vocab_size"));
  TESSERA_ASSIGN_OR_RETURN(config.norm_eps, keys.Double("rms_norm_eps", family.default_norm_eps));
  TESSERA_ASSIGN_OR_RETURN(config.context_length,
                           keys.Int("max_position_embeddings", family.default_context));
  TESSERA_ASSIGN_OR_RETURN(config.embedding.tied, keys.Bool("tie_word_embeddings", false));
  return {};
}

}  // namespace

Result<ModelConfig> ReadHfConfig(const json::Object& object) {
  KeyReader keys(object);
  TESSERA_ASSIGN_OR_RETURN(const Family* const family, ReadFamily(keys));
  TESSERA_RETURN_IF_ERROR(StatusOf(FindQuantisation(object)));
  TESSERA_RETURN_IF_ERROR(CheckFixedKeys(keys));
  ModelConfig config;
  config.family = family->name;
  config.naming = Naming::kHuggingFace;
  TESSERA_RETURN_IF_ERROR(ReadSizes(*family, keys, config));
  TESSERA_RETURN_IF_ERROR(ReadAttention(*family, keys, config));
  TESSERA_RETURN_IF_ERROR(ReadFfn(*family, keys, config.ffn));
  TESSERA_ASSIGN_OR_RETURN(
      config.rope, ReadHfRope(*family, keys, config.attention.head_dim, config.context_length));
  TESSERA_RETURN_IF_ERROR(keys.RefuseOthers(kHfHarmlessKeys));
  TESSERA_RETURN_IF_ERROR(CheckConfig(config));
  return config;
}

Result<ModelConfig> ParseHfConfig(std::string_view text, std::string_view where) {
  const json::Limits limits{.max_bytes = kMaxConfigBytes, .max_depth = 16, .max_keys = 1u << 16};
  TESSERA_ASSIGN_OR_RETURN(const json::Value value, json::Parse(text, limits, where));
  const json::Object* object = value.if_object();
  if (object == nullptr) {
    return Fail(
        InvalidArgument(fmt::format("{} is {}, expected an object", where, json::KindName(value))));
  }
  Result<ModelConfig> config = ReadHfConfig(*object);
  if (!config.has_value()) {
    return Fail(std::move(config).error().WithContext(std::string(where)));
  }
  return config;
}

}  // namespace tessera::model
