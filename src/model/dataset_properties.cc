// SPDX-License-Identifier: Apache-2.0
#include "model/dataset_properties.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "graph/limits.h"

namespace tessera::model {
namespace {

using formats::MetadataValue;

bool AllOf(const json::Array& array, bool (*is)(const json::Value&)) {
  return std::ranges::all_of(array, is);
}
bool IsInteger(const json::Value& value) {
  return value.is_int64();
}
bool IsNumber(const json::Value& value) {
  return value.is_int64() || value.is_uint64() || value.is_double();
}
bool IsString(const json::Value& value) {
  return value.is_string();
}

template <class T>
std::vector<T> Numbers(const json::Array& array) {
  std::vector<T> out;
  out.reserve(array.size());
  for (const json::Value& value : array) out.push_back(static_cast<T>(value.to_number<double>()));
  return out;
}

template <class T>
Result<MetadataValue> Integers(std::string_view key, const json::Array& array) {
  std::vector<T> out;
  out.reserve(array.size());
  for (const json::Value& value : array) {
    if (!value.is_int64() || !std::in_range<T>(value.get_int64()))
      return Fail(InvalidArgument(fmt::format("'{}' holds {}, expected small integers", key,
                                              json::Serialize(value).substr(0, 40))));
    out.push_back(static_cast<T>(value.get_int64()));
  }
  return MetadataValue(std::move(out));
}

/// Arrays get the types that GGUF has for them, since readers ask for these. Nothing for an array
/// that GGUF could not hold.
Result<std::optional<MetadataValue>> ArrayOf(std::string_view key, const json::Array& array) {
  if (key == "tokenizer.ggml.token_type") return Integers<int32_t>(key, array);
  if (key == "tokenizer.ggml.precompiled_charsmap") return Integers<uint8_t>(key, array);
  if (AllOf(array, IsString)) {
    std::vector<std::string> texts;
    texts.reserve(array.size());
    for (const json::Value& value : array) texts.emplace_back(value.get_string());
    return MetadataValue(std::move(texts));
  }
  if (AllOf(array, IsInteger)) return Integers<int64_t>(key, array);
  if (!AllOf(array, IsNumber)) return std::nullopt;
  if (key == "tokenizer.ggml.scores") return MetadataValue(Numbers<float>(array));
  return MetadataValue(Numbers<double>(array));
}

Result<std::optional<MetadataValue>> ValueOf(std::string_view key, const json::Value& value) {
  if (value.is_string()) return MetadataValue(std::string(value.get_string()));
  if (value.is_bool()) return MetadataValue(value.get_bool());
  if (value.is_int64()) return MetadataValue(value.get_int64());
  if (value.is_uint64()) return MetadataValue(value.get_uint64());
  if (value.is_double()) return MetadataValue(value.get_double());
  if (const json::Array* array = value.if_array()) return ArrayOf(key, *array);
  return std::nullopt;
}

/// A config.json, or the object inside which sharktank's importer of other models puts it.
const json::Object* FindHfConfig(const json::Object& properties) {
  for (const std::string_view inner : {"hparams", "hf_config"})
    if (const json::Value* nested = json::Find(properties, inner);
        nested != nullptr && nested->is_object())
      return &nested->get_object();
  return json::Find(properties, "model_type") != nullptr ? &properties : nullptr;
}

Status Add(formats::Metadata& metadata, const std::string& key, MetadataValue value) {
  if (metadata.Find(key) != nullptr) return {};
  return metadata.Add(key, std::move(value));
}

/// sharktank's meaning of absent keys, in GGUF's words.
Status AddDefaults(const json::Object& properties, const std::string& prefix, bool is_gguf,
                   formats::Metadata& metadata) {
  TESSERA_ASSIGN_OR_RETURN(const int64_t head_dim,
                           json::GetInt(properties, prefix + "attention.head_dim", 0));
  if (head_dim != 0)
    TESSERA_RETURN_IF_ERROR(Add(metadata, prefix + "attention.key_length", head_dim));
  if (is_gguf) return {};
  constexpr int64_t kRotaryDim = 128;
  constexpr double kTheta = 500000;
  TESSERA_ASSIGN_OR_RETURN(const int64_t rotary,
                           json::GetInt(properties, prefix + "rope.dimension_count", kRotaryDim));
  TESSERA_RETURN_IF_ERROR(Add(metadata, prefix + "rope.dimension_count", rotary));
  TESSERA_RETURN_IF_ERROR(Add(metadata, prefix + "attention.key_length", rotary));
  return Add(metadata, prefix + "rope.freq_base", kTheta);
}

Status ReadDivisors(const json::Object& properties, std::vector<double>& divisors) {
  const json::Value* value = json::Find(properties, kRopeDivisorsKey);
  if (value == nullptr) return {};
  if (!value->is_array() || value->get_array().size() > static_cast<size_t>(graph::kMaxRotaryDim) ||
      !AllOf(value->get_array(), IsNumber))
    return InvalidArgument(fmt::format("'{}' is no short array of numbers", kRopeDivisorsKey));
  divisors = Numbers<double>(value->get_array());
  return {};
}

}  // namespace

Result<DatasetProperties> ReadDatasetProperties(const json::Object& properties) {
  DatasetProperties result;
  if (json::Find(properties, "general.architecture") == nullptr) {
    result.hf_config = FindHfConfig(properties);
    if (result.hf_config != nullptr) return result;
    return Fail(InvalidArgument(
        "the dataset's properties have neither 'general.architecture' nor 'model_type'"));
  }
  TESSERA_ASSIGN_OR_RETURN(const std::string architecture,
                           json::NeedString(properties, "general.architecture"));
  TESSERA_ASSIGN_OR_RETURN(const std::string schema, json::GetString(properties, "schema", ""));
  const std::string prefix = architecture + ".";
  const std::string interleave = prefix + std::string(kInterleaveKey);
  for (const auto& [key, value] : properties) {
    if (key == interleave || key == prefix + "attention.head_dim" || value.is_null()) continue;
    TESSERA_ASSIGN_OR_RETURN(std::optional<MetadataValue> typed, ValueOf(key, value));
    if (typed) TESSERA_RETURN_IF_ERROR(result.metadata.Add(key, *std::move(typed)));
  }
  const bool is_gguf = schema == "GGUF";
  TESSERA_RETURN_IF_ERROR(AddDefaults(properties, prefix, is_gguf, result.metadata));
  if (json::Find(properties, interleave) != nullptr) {
    TESSERA_ASSIGN_OR_RETURN(result.interleaved, json::GetBool(properties, interleave, false));
  } else if (!is_gguf) {
    result.interleaved = false;
  }
  TESSERA_RETURN_IF_ERROR(ReadDivisors(properties, result.rope_divisors));
  return result;
}

void ApplyDatasetRope(const DatasetProperties& properties, ModelConfig& config) {
  if (properties.interleaved)
    config.rope.style =
        *properties.interleaved ? graph::RopeStyle::kInterleaved : graph::RopeStyle::kHalf;
  if (!properties.rope_divisors.empty() &&
      std::holds_alternative<NoRopeScaling>(config.rope.scaling))
    config.rope.scaling = RopeDivisors{properties.rope_divisors};
}

}  // namespace tessera::model
