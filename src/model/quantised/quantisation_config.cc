// SPDX-License-Identifier: Apache-2.0
#include "model/quantised/quantisation_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/limits.h"

namespace tessera::model {
namespace {

Status Unknown(std::string_view key, std::string_view value, std::string_view expected) {
  return Unimplemented(
      fmt::format("'quantization_config.{}' is '{:.80}'; supported are {}", key, value, expected));
}

std::string Lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

Status CheckBits(const Quantisation& q, std::initializer_list<int64_t> known) {
  if (std::ranges::find(known, q.bits) != known.end()) return {};
  return Unknown("bits", fmt::to_string(q.bits), known.size() == 1 ? "4" : "4 and 8");
}

Status SetGroupSize(int64_t size, Quantisation& q) {
  if (size == -1) return {};  // One group a row.
  if (size < 1 || size > kMaxWidth)
    return InvalidArgument(fmt::format(
        "'quantization_config.group_size' is {}, expected -1 or 1 to {}", size, kMaxWidth));
  q.group_size = size;
  return {};
}

/// A key that must have one of these values when it is there.
Status MustBe(const json::Object& config, std::string_view key, std::string_view fallback,
              std::initializer_list<std::string_view> known) {
  TESSERA_ASSIGN_OR_RETURN(std::string value, json::GetString(config, key, std::string(fallback)));
  value = Lower(std::move(value));
  if (std::ranges::find(known, value) != known.end()) return {};
  std::string names;
  for (const std::string_view name : known)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  return Unknown(key, value, names);
}

Status RefuseFlag(const json::Object& config, std::string_view key) {
  TESSERA_ASSIGN_OR_RETURN(const bool is_set, json::GetBool(config, key, false));
  return is_set ? Unknown(key, "true", "false") : Status();
}

Status ReadGptq(const json::Object& config, Quantisation& q) {
  q.method = QuantisationMethod::kGptq;
  TESSERA_ASSIGN_OR_RETURN(q.bits, json::NeedInt(config, "bits"));
  TESSERA_RETURN_IF_ERROR(CheckBits(q, {4, 8}));
  TESSERA_ASSIGN_OR_RETURN(const int64_t group, json::GetInt(config, "group_size", 128));
  TESSERA_RETURN_IF_ERROR(SetGroupSize(group, q));
  TESSERA_ASSIGN_OR_RETURN(q.symmetric, json::GetBool(config, "sym", true));
  TESSERA_RETURN_IF_ERROR(MustBe(config, "checkpoint_format", "gptq", {"gptq", "gptq_v2"}));
  TESSERA_RETURN_IF_ERROR(MustBe(config, "pack_dtype", "int32", {"int32"}));
  TESSERA_RETURN_IF_ERROR(RefuseFlag(config, "is_marlin_format"));
  TESSERA_ASSIGN_OR_RETURN(const std::string format,
                           json::GetString(config, "checkpoint_format", "gptq"));
  q.zeros_minus_one = Lower(format) == "gptq";
  // GPTQModel's overrides of bits and group size for single modules.
  const json::Value* dynamic = json::Find(config, "dynamic");
  const bool has_overrides =
      dynamic != nullptr && dynamic->is_object() && !dynamic->get_object().empty();
  return has_overrides ? Unknown("dynamic", "an object", "none") : Status();
}

Status ReadAwq(const json::Object& config, Quantisation& q) {
  q.method = QuantisationMethod::kAwq;
  // Older configs say w_bit and q_group_size.
  TESSERA_ASSIGN_OR_RETURN(const int64_t old_bits, json::GetInt(config, "w_bit", 4));
  TESSERA_ASSIGN_OR_RETURN(q.bits, json::GetInt(config, "bits", old_bits));
  TESSERA_RETURN_IF_ERROR(CheckBits(q, {4}));
  TESSERA_ASSIGN_OR_RETURN(const int64_t old_group, json::GetInt(config, "q_group_size", 128));
  TESSERA_ASSIGN_OR_RETURN(const int64_t group, json::GetInt(config, "group_size", old_group));
  TESSERA_RETURN_IF_ERROR(SetGroupSize(group, q));
  return MustBe(config, "version", "gemm", {"gemm"});
}

/// [rows, columns] under `key`.
Status ReadBlocks(const json::Object& object, std::string_view key, Quantisation& q) {
  const json::Value* value = json::Find(object, key);
  if (value == nullptr) return {};
  const json::Array* array = value->if_array();
  int64_t dims[2] = {0, 0};
  for (size_t i = 0; array != nullptr && array->size() == 2 && i < 2; ++i)
    if (const json::Value& dim = (*array)[i]; dim.is_int64()) dims[i] = dim.get_int64();
  if (dims[0] < 1 || dims[0] > kMaxWidth || dims[1] < 1 || dims[1] > kMaxWidth)
    return InvalidArgument(fmt::format(
        "'quantization_config.{}' is no array of two numbers from 1 to {}", key, kMaxWidth));
  q.block_rows = dims[0];
  q.block_columns = dims[1];
  return {};
}

/// One scheme of compressed-tensors: "weights" of a config group.
Status ReadScheme(const json::Object& weights, Quantisation& q) {
  TESSERA_ASSIGN_OR_RETURN(const std::string type, json::GetString(weights, "type", "int"));
  TESSERA_ASSIGN_OR_RETURN(q.bits, json::NeedInt(weights, "num_bits"));
  TESSERA_ASSIGN_OR_RETURN(q.symmetric, json::GetBool(weights, "symmetric", true));
  if (type == "float") {
    q.method = QuantisationMethod::kFp8;
    if (q.bits != 8) return Unknown("num_bits", fmt::to_string(q.bits), "8 of floats");
    return ReadBlocks(weights, "block_structure", q);
  }
  if (type != "int") return Unknown("type", type, "int and float");
  q.method = QuantisationMethod::kPackedInts;
  TESSERA_RETURN_IF_ERROR(CheckBits(q, {4, 8}));
  const json::Value* strategy = json::Find(weights, "strategy");
  const json::Value* group = json::Find(weights, "group_size");
  if (strategy != nullptr && strategy->is_string() && strategy->get_string() != "group" &&
      strategy->get_string() != "channel")
    return Unknown("strategy", strategy->get_string(), "group and channel");
  if (group == nullptr) return {};  // By channel.
  TESSERA_ASSIGN_OR_RETURN(const int64_t size, json::NeedInt(weights, "group_size"));
  return SetGroupSize(size, q);
}

Status ReadCompressedTensors(const json::Object& config, Quantisation& q) {
  TESSERA_RETURN_IF_ERROR(MustBe(config, "format", "pack-quantized",
                                 {"pack-quantized", "float-quantized", "naive-quantized"}));
  const json::Value* sparsity = json::Find(config, "sparsity_config");
  if (sparsity != nullptr && sparsity->is_object() && !sparsity->get_object().empty())
    TESSERA_RETURN_IF_ERROR(MustBe(sparsity->get_object(), "format", "dense", {"dense"}));
  const json::Value* groups = json::Find(config, "config_groups");
  if (groups == nullptr || !groups->is_object() || groups->get_object().empty())
    return InvalidArgument("'quantization_config.config_groups' is missing or no object");
  std::optional<Quantisation> first;
  for (const auto& [name, group] : groups->get_object()) {
    const json::Object* object = group.if_object();
    const json::Value* weights = object == nullptr ? nullptr : json::Find(*object, "weights");
    if (weights == nullptr || !weights->is_object())
      return Unknown("config_groups", std::string_view(name), "groups that quantise weights");
    Quantisation one = q;
    TESSERA_RETURN_IF_ERROR(ReadScheme(weights->get_object(), one));
    if (first.value_or(one) != one)
      return Unknown("config_groups", "several schemes", "one scheme for all matrices");
    first = one;
  }
  q = *first;
  return {};
}

Status ReadFp8(const json::Object& config, Quantisation& q) {
  q.method = QuantisationMethod::kFp8;
  q.bits = 8;
  q.symmetric = true;
  TESSERA_RETURN_IF_ERROR(ReadBlocks(config, "weight_block_size", q));
  return MustBe(config, "fmt", "e4m3", {"e4m3", "float8_e4m3fn"});
}

Status ReadModelOpt(const json::Object& config, Quantisation& q) {
  TESSERA_RETURN_IF_ERROR(MustBe(config, "quant_algo", "", {"fp8"}));
  return ReadFp8(config, q);
}

}  // namespace

Result<Quantisation> ReadQuantisation(const json::Object& config) {
  Quantisation q;
  TESSERA_ASSIGN_OR_RETURN(q.name, json::GetString(config, "quant_method", ""));
  const std::string method = Lower(q.name);
  Status status;
  if (method == "gptq") {
    status = ReadGptq(config, q);
  } else if (method == "awq") {
    status = ReadAwq(config, q);
  } else if (method == "compressed-tensors") {
    status = ReadCompressedTensors(config, q);
  } else if (method == "fp8" || method == "fbgemm_fp8") {
    status = ReadFp8(config, q);
  } else if (method == "modelopt") {
    status = ReadModelOpt(config, q);
  } else {
    status = Unknown("quant_method", q.name, "gptq, awq, compressed-tensors, fp8 and modelopt");
  }
  if (!status.ok()) return Fail(std::move(status));
  return q;
}

Result<std::optional<Quantisation>> FindQuantisation(const json::Object& hf_config) {
  for (const std::string_view key : {"quantization_config", "compression_config"}) {
    const json::Value* value = json::Find(hf_config, key);
    if (value == nullptr) continue;
    if (!value->is_object())
      return Fail(InvalidArgument(
          fmt::format("'{}' is {}, expected an object", key, json::KindName(*value))));
    TESSERA_ASSIGN_OR_RETURN(Quantisation q, ReadQuantisation(value->get_object()));
    return std::optional<Quantisation>(std::move(q));
  }
  return std::optional<Quantisation>();
}

std::span<const QuantisationFile> QuantisationFiles() {
  static constexpr std::array<QuantisationFile, 3> kFiles = {{
      {"quantize_config.json", "gptq", ""},
      {"quant_config.json", "awq", ""},
      {"hf_quant_config.json", "modelopt", "quantization"},
  }};
  return kFiles;
}

Result<Quantisation> ReadQuantisationFile(const json::Object& text, const QuantisationFile& file) {
  json::Object config = text;
  if (!file.inside.empty()) {
    const json::Value* inside = json::Find(text, file.inside);
    if (inside == nullptr || !inside->is_object())
      return Fail(InvalidArgument(fmt::format("'{}' is missing or no object", file.inside)));
    config = inside->get_object();
  }
  if (json::Find(config, "quant_method") == nullptr) config["quant_method"] = file.method;
  return ReadQuantisation(config);
}

}  // namespace tessera::model
