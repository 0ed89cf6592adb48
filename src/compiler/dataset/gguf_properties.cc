// SPDX-License-Identifier: Apache-2.0
#include "compiler/dataset/gguf_properties.h"

#include <fmt/format.h>

#include <cmath>

#include "base/utf8.h"
#include "formats/irpa/dataset.h"
#include "model/dataset_properties.h"
#include "model/families.h"
#include "model/rope.h"

namespace tessera::compiler {
namespace {

using model::ModelConfig;

template <class T>
Result<json::Value> ToJson(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (!IsUtf8(value)) return Fail(InvalidArgument("is no valid UTF-8"));
    return json::Value(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value))
      return Fail(InvalidArgument(fmt::format("is {}, which JSON has no number for", value)));
    return json::Value(static_cast<double>(value));
  } else {
    return json::Value(value);
  }
}

Result<json::Value> MetadataToJson(const formats::MetadataValue& value) {
  return std::visit(
      []<class T>(const T& held) -> Result<json::Value> {
        if constexpr (std::is_same_v<T, std::string> || !requires { typename T::value_type; }) {
          return ToJson(held);
        } else {
          json::Array items;
          items.reserve(held.size());
          for (const auto& element : held) {
            if constexpr (std::is_same_v<T, std::vector<formats::NestedArray>>) {
              TESSERA_ASSIGN_OR_RETURN(json::Value item, MetadataToJson(element.value));
              items.push_back(std::move(item));
            } else {
              TESSERA_ASSIGN_OR_RETURN(json::Value item, ToJson<typename T::value_type>(element));
              items.push_back(std::move(item));
            }
          }
          return json::Value(std::move(items));
        }
      },
      value);
}

/// As the importer of sharktank has it: the file's own counts first, then its keys in their order.
Result<json::Object> FromGguf(const formats::ParameterIndex& index) {
  json::Object out;
  out["schema"] = "GGUF";
  out["GGUF.version"] = index.files().front().version;
  out["GGUF.tensor_count"] = index.entries().size();
  out["GGUF.kv_count"] = index.metadata().items().size();
  for (const auto& [key, value] : index.metadata().items()) {
    Result<json::Value> converted = MetadataToJson(value);
    if (!converted.has_value())
      return Fail(std::move(converted).error().WithContext(fmt::format("'{}'", key)));
    out[key] = *std::move(converted);
  }
  return out;
}

Status RefuseUnspeakable(const ModelConfig& c) {
  const bool plain = !c.attention.window && !c.attention.softcap && !c.logit_softcap &&
                     c.logit_scale == 1 && c.residual_scale == 1 && c.embedding.scale == 1 &&
                     c.ffn.gated && c.ffn.activation == model::Activation::kSilu;
  if (plain) return {};
  return Unimplemented(
      "a dataset of this model: sliding windows, softcaps and scaled residuals have no key there");
}

void AddScaling(const ModelConfig& config, const std::string& prefix, json::Object& out) {
  if (const auto* s = std::get_if<model::LinearRopeScaling>(&config.rope.scaling)) {
    out[prefix + "rope.scaling.type"] = "linear";
    out[prefix + "rope.scaling.factor"] = s->factor;
  }
  if (const auto* s = std::get_if<model::YarnRopeScaling>(&config.rope.scaling)) {
    out[prefix + "rope.scaling.type"] = "yarn";
    out[prefix + "rope.scaling.factor"] = s->factor;
    out[prefix + "rope.scaling.original_context_length"] =
        static_cast<int64_t>(s->original_context);
    out[prefix + "rope.scaling.yarn_beta_fast"] = s->beta_fast;
    out[prefix + "rope.scaling.yarn_beta_slow"] = s->beta_slow;
  }
}

Result<json::Object> FromConfig(const ModelConfig& c) {
  TESSERA_RETURN_IF_ERROR(RefuseUnspeakable(c));
  const model::Family* family = model::FindFamily(c.family);
  if (family == nullptr || family->gguf_architectures.empty())
    return Fail(Unimplemented(fmt::format("a dataset of a {}: GGUF has no name for it", c.family)));
  const std::string architecture(family->gguf_architectures.front());
  const std::string p = architecture + ".";
  json::Object out;
  out["schema"] = "GGUF";
  out["general.architecture"] = architecture;
  out[p + "context_length"] = c.context_length;
  out[p + "embedding_length"] = c.hidden;
  out[p + "block_count"] = c.layers;
  out[p + "feed_forward_length"] = c.ffn.intermediate;
  out[p + "attention.head_count"] = c.attention.heads;
  out[p + "attention.layer_norm_rms_epsilon"] = c.norm_eps;
  out[p + "attention.head_count_kv"] = c.attention.kv_heads;
  out[p + "vocab_size"] = c.vocab_size;
  if (c.attention.head_dim * c.attention.heads != c.hidden ||
      c.attention.head_dim != c.rope.rotary_dim) {
    out[p + "attention.key_length"] = c.attention.head_dim;
    out[p + "attention.value_length"] = c.attention.head_dim;
  }
  out[p + "expert_count"] = 0;
  out[p + "expert_used_count"] = 0;
  out[p + "rope.dimension_count"] = c.rope.rotary_dim;
  out[p + "rope.freq_base"] = c.rope.theta;
  out[p + "rope.interleave_emb"] = family->gguf_rope_style == graph::RopeStyle::kInterleaved;
  AddScaling(c, p, out);
  return out;
}

/// Sharded sets lack rope_freqs.weight.
void KeepDivisors(const ModelConfig& config, json::Object& out) {
  const std::vector<float> divisors = RopeDivisorsOf(config);
  if (divisors.empty()) return;
  json::Array values;
  for (const float divisor : divisors) values.emplace_back(static_cast<double>(divisor));
  out[model::kRopeDivisorsKey] = std::move(values);
}

/// Leaves the others in their order.
void Erase(json::Object& object, std::string_view key) {
  if (const auto at = object.find(key); at != object.end()) object.stable_erase(at);
}

}  // namespace

std::vector<float> RopeDivisorsOf(const ModelConfig& config) {
  if (!std::holds_alternative<model::RopeDivisors>(config.rope.scaling) &&
      !std::holds_alternative<model::Llama3RopeScaling>(config.rope.scaling))
    return {};
  model::RopeConfig plain = config.rope;
  plain.scaling = model::NoRopeScaling{};
  const graph::RopeTable base = model::MakeRopeTable(plain);
  const graph::RopeTable scaled = model::MakeRopeTable(config.rope);
  std::vector<float> divisors;
  for (size_t i = 0; i < base.inverse_frequency.size(); ++i)
    divisors.push_back(static_cast<float>(base.inverse_frequency[i] / scaled.inverse_frequency[i]));
  return divisors;
}

Result<json::Object> MakeDatasetProperties(const model::ModelSource& source, int64_t ranks) {
  constexpr std::string_view kRanks = "tensor_parallelism_size";
  json::Object out;
  if (source.dataset_properties != nullptr &&
      json::Find(*source.dataset_properties, "general.architecture") != nullptr) {
    out = *source.dataset_properties;
  } else if (source.index.files().front().format == formats::Format::kGguf) {
    TESSERA_ASSIGN_OR_RETURN(out, FromGguf(source.index));
  } else {
    TESSERA_ASSIGN_OR_RETURN(out, FromConfig(source.config));
  }
  // The newer generation's key would contradict the blobs' names.
  Erase(out, formats::irpa::Keys(formats::irpa::KeyGeneration::kAmdShark).version);
  const std::string_view version =
      formats::irpa::Keys(formats::irpa::KeyGeneration::kShark).version;
  const bool had_version = out.contains(version);
  if (had_version) out[version] = formats::irpa::kDatasetVersion;
  if (ranks > 1) {
    KeepDivisors(source.config, out);
    out[kRanks] = ranks;
  } else {
    Erase(out, kRanks);
  }
  if (!had_version) out[version] = formats::irpa::kDatasetVersion;
  return out;
}

}  // namespace tessera::compiler
