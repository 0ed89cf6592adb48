// SPDX-License-Identifier: Apache-2.0
#include "model/gguf_config.h"

#include <fmt/format.h>

#include <cmath>

#include "model/families.h"
#include "model/limits.h"
#include "model/metadata_reader.h"
#include "model/rope.h"
#include "tensor/convert.h"

namespace tessera::model {
namespace {

using formats::ParameterIndex;

Result<const Family*> ReadFamily(const formats::Metadata& metadata) {
  if (metadata.Find("general.type") != nullptr) {
    TESSERA_ASSIGN_OR_RETURN(const std::string type, metadata.Text("general.type"));
    if (type != "model") {
      return Fail(Unimplemented(fmt::format("'general.type' is '{}', expected a model", type)));
    }
  }
  TESSERA_ASSIGN_OR_RETURN(const std::string name, metadata.Text("general.architecture"));
  const Family* family = FindFamilyByGgufArchitecture(name);
  if (family != nullptr) return family;
  std::string names;
  for (const Family* known : Families()) {
    for (const std::string_view architecture : known->gguf_architectures) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", architecture);
    }
  }
  return Fail(Unimplemented(fmt::format(
      "'general.architecture' is '{}', which is not supported; supported are {}", name, names)));
}

/// rope_freqs.weight: one divisor a pair. The only weight whose values are read here.
Result<RopeDivisors> ReadDivisors(const ParameterIndex& index, const formats::ParameterEntry& entry,
                                  int64_t pairs) {
  if (entry.shape != tensor::Shape{pairs}) {
    return Fail(InvalidArgument(
        fmt::format("{} has shape {}, expected [{}]", entry.name, entry.shape.ToString(), pairs)));
  }
  TESSERA_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, index.Materialise(entry));
  std::vector<float> values(static_cast<size_t>(pairs));
  TESSERA_RETURN_IF_ERROR(tensor::ToFloat(entry.dtype, bytes, values).WithContext(entry.name));
  return RopeDivisors{std::vector<double>(values.begin(), values.end())};
}

Result<RopeScaling> ReadYarn(MetadataReader& keys, double factor) {
  YarnRopeScaling s;
  s.factor = factor;
  TESSERA_ASSIGN_OR_RETURN(s.original_context,
                           keys.NeedNumber("rope.scaling.original_context_length"));
  TESSERA_ASSIGN_OR_RETURN(s.beta_fast, keys.Number("rope.scaling.yarn_beta_fast", 32));
  TESSERA_ASSIGN_OR_RETURN(s.beta_slow, keys.Number("rope.scaling.yarn_beta_slow", 1));
  TESSERA_RETURN_IF_ERROR(keys.MustEqual("rope.scaling.yarn_ext_factor", 1, "a partial ramp"));
  // A factor on top of the paper's, as llama.cpp applies it.
  TESSERA_ASSIGN_OR_RETURN(const double extra, keys.Number("rope.scaling.attn_factor", 1));
  s.attention_factor = extra * YarnAttentionFactor(s.factor);
  return s;
}

Result<RopeScaling> ReadScaling(MetadataReader& keys, const ParameterIndex& index,
                                int64_t rotary_dim) {
  TESSERA_ASSIGN_OR_RETURN(const double old_factor, keys.Number("rope.scale_linear", 1));
  TESSERA_ASSIGN_OR_RETURN(const std::string type,
                           keys.Text("rope.scaling.type", old_factor == 1 ? "none" : "linear"));
  TESSERA_ASSIGN_OR_RETURN(const double factor, keys.Number("rope.scaling.factor", old_factor));
  const formats::ParameterEntry* divisors = index.Find(kGgufRopeFreqs);
  if (divisors != nullptr) {
    if (type != "none") {
      return Fail(Unimplemented(fmt::format(
          "{} together with 'rope.scaling.type' {} is not supported", kGgufRopeFreqs, type)));
    }
    return ReadDivisors(index, *divisors, rotary_dim / 2);
  }
  if (type == "none") return NoRopeScaling{};
  if (type == "linear") return LinearRopeScaling{factor};
  if (type == "yarn") return ReadYarn(keys, factor);
  return Fail(Unimplemented(
      fmt::format("'rope.scaling.type' is '{}'; supported are none, linear and yarn", type)));
}

Status ReadRope(const Family& family, MetadataReader& keys, const ParameterIndex& index,
                ModelConfig& config) {
  RopeConfig& rope = config.rope;
  const int64_t head_dim = config.attention.head_dim;
  rope.style = family.gguf_rope_style;
  TESSERA_ASSIGN_OR_RETURN(rope.theta, keys.Number("rope.freq_base", family.default_theta));
  TESSERA_ASSIGN_OR_RETURN(rope.rotary_dim, keys.Int("rope.dimension_count", head_dim));
  if (rope.rotary_dim < 2 || rope.rotary_dim > head_dim) {
    return InvalidArgument(
        fmt::format("'rope.dimension_count' is {}, expected 2 to {}", rope.rotary_dim, head_dim));
  }
  TESSERA_ASSIGN_OR_RETURN(rope.scaling, ReadScaling(keys, index, rope.rotary_dim));
  return {};
}

Status ReadAttention(const Family& family, MetadataReader& keys, const ParameterIndex& index,
                     ModelConfig& config) {
  AttentionConfig& a = config.attention;
  TESSERA_ASSIGN_OR_RETURN(a.heads, keys.NeedInt("attention.head_count"));
  if (a.heads < 1) {
    return InvalidArgument(fmt::format("'attention.head_count' is {}, expected >= 1", a.heads));
  }
  TESSERA_ASSIGN_OR_RETURN(a.kv_heads, keys.Int("attention.head_count_kv", a.heads));
  const int64_t fallback = config.hidden % a.heads == 0 ? config.hidden / a.heads : 0;
  TESSERA_ASSIGN_OR_RETURN(a.head_dim, keys.Int("attention.key_length", fallback));
  TESSERA_ASSIGN_OR_RETURN(const int64_t value_dim, keys.Int("attention.value_length", a.head_dim));
  if (value_dim != a.head_dim) {
    return Unimplemented(fmt::format("'attention.value_length' {} differs from key_length {}",
                                     value_dim, a.head_dim));
  }
  if (a.head_dim < 1) {
    return InvalidArgument(fmt::format("'attention.key_length' is {}, expected >= 1", a.head_dim));
  }
  TESSERA_ASSIGN_OR_RETURN(a.scale, keys.Number("attention.scale", 0));
  if (a.scale == 0) a.scale = 1.0 / std::sqrt(static_cast<double>(a.head_dim));
  const auto has_bias = [&](std::string_view name) {
    return index.Find(family.gguf_names->LayerBias(0, name)) != nullptr;
  };
  a.qkv_bias = family.qkv_bias || (family.has_attention_bias_key && has_bias(family.gguf_names->q));
  a.output_bias = family.has_attention_bias_key && has_bias(family.gguf_names->o);
  a.qk_norm = family.qk_norm;
  config.ffn.bias = family.has_mlp_bias_key && has_bias(family.gguf_names->up);
  // A window that covers the context is none; others are not applied by the architectures here.
  TESSERA_ASSIGN_OR_RETURN(const int64_t window, keys.Int("attention.sliding_window", 0));
  if (window == 0 || window >= config.context_length) return {};
  return Unimplemented(fmt::format("'attention.sliding_window' is {} in a file of architecture {}",
                                   window, family.gguf_architectures.front()));
}

Status ReadSizes(MetadataReader& keys, const ParameterIndex& index, const WeightNames& names,
                 ModelConfig& config) {
  TESSERA_ASSIGN_OR_RETURN(config.layers, keys.NeedInt("block_count"));
  TESSERA_ASSIGN_OR_RETURN(config.hidden, keys.NeedInt("embedding_length"));
  TESSERA_ASSIGN_OR_RETURN(config.context_length, keys.NeedInt("context_length"));
  TESSERA_ASSIGN_OR_RETURN(config.ffn.intermediate, keys.NeedInt("feed_forward_length"));
  TESSERA_ASSIGN_OR_RETURN(config.norm_eps, keys.NeedNumber("attention.layer_norm_rms_epsilon"));
  const std::string table = names.Weight(names.embedding);
  const formats::ParameterEntry* embedding = index.Find(table);
  if (embedding == nullptr || embedding->shape.rank() != 2) {
    return InvalidArgument(fmt::format("tensor {} is missing or has not two dimensions", table));
  }
  config.vocab_size = embedding->shape[0];
  TESSERA_ASSIGN_OR_RETURN(const int64_t stated, keys.Int("vocab_size", config.vocab_size));
  if (stated != config.vocab_size) {
    return InvalidArgument(
        fmt::format("'vocab_size' is {}, but {} has {} rows", stated, table, config.vocab_size));
  }
  config.embedding.tied = index.Find(names.Weight(names.head)) == nullptr;
  return {};
}

/// Keys that do nothing at these values.
Status CheckFixedKeys(MetadataReader& keys) {
  constexpr std::string_view kExperts = "mixtures of experts are not supported";
  TESSERA_RETURN_IF_ERROR(keys.MustEqual("expert_count", 0, kExperts));
  TESSERA_RETURN_IF_ERROR(keys.MustEqual("expert_used_count", 0, kExperts));
  TESSERA_RETURN_IF_ERROR(keys.MustEqual("logit_scale", 1, "no family here scales logits"));
  TESSERA_RETURN_IF_ERROR(keys.MustEqual("embedding_scale", 1, "no family here scales these"));
  TESSERA_RETURN_IF_ERROR(keys.MustEqual("residual_scale", 1, "no family here scales these"));
  return keys.MustEqual("attention.max_alibi_bias", 0, "positions are rotary");
}

}  // namespace

Result<ModelConfig> ReadGgufConfig(const ParameterIndex& index) {
  TESSERA_ASSIGN_OR_RETURN(const Family* const family, ReadFamily(index.metadata()));
  TESSERA_ASSIGN_OR_RETURN(const std::string name, index.metadata().Text("general.architecture"));
  MetadataReader keys(index.metadata(), name + ".");
  ModelConfig config;
  config.family = family->name;
  config.naming = Naming::kGguf;
  TESSERA_RETURN_IF_ERROR(CheckFixedKeys(keys));
  TESSERA_RETURN_IF_ERROR(ReadSizes(keys, index, *family->gguf_names, config));
  TESSERA_RETURN_IF_ERROR(ReadAttention(*family, keys, index, config));
  TESSERA_RETURN_IF_ERROR(ReadRope(*family, keys, index, config));
  // Marks about how a file came to be.
  constexpr std::string_view kHarmless[] = {"rope.scaling.finetuned",
                                            "rope.scaling.original_context_length",
                                            "attention.causal", "tensor_data_layout"};
  if (index.metadata().Find(name + ".attention.causal") != nullptr) {
    TESSERA_ASSIGN_OR_RETURN(const bool causal, index.metadata().Bool(name + ".attention.causal"));
    if (!causal) return Fail(Unimplemented(fmt::format("'{}.attention.causal' is false", name)));
  }
  TESSERA_RETURN_IF_ERROR(keys.RefuseOthers(kHarmless));
  TESSERA_RETURN_IF_ERROR(CheckConfig(config));
  return config;
}

}  // namespace tessera::model
