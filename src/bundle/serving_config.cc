// SPDX-License-Identifier: Apache-2.0
#include "bundle/serving_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/json.h"
#include "bundle/json_fields.h"
#include "bundle/limits.h"

namespace tessera::bundle {
namespace {

// Keys that only the current generation has.
constexpr std::array<std::string_view, 3> kNewerKeys = {"has_prefill_position",
                                                        "logits_normalization", "top_k"};
constexpr std::array<std::string_view, 2> kNewerPagedKeys = {
    "kv_cache_dtype", "paged_kv_block_size_elements_per_device"};

std::string Quote(const std::string& text) {
  return json::Serialize(json::Value(text));
}

std::string List(const std::vector<int64_t>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

std::string WritePaged(const PagedKvCacheConfig& paged, ConfigGeneration generation) {
  std::string text = fmt::format(
      "{{\"attention_head_count_kv\": {}, \"block_seq_stride\": {}, \"device_block_count\": {}",
      paged.attention_head_count_kv, paged.block_seq_stride, paged.device_block_count);
  if (generation == ConfigGeneration::kSeed) return text + "}";
  text += fmt::format(", \"kv_cache_dtype\": {}", Quote(paged.kv_cache_dtype));
  if (!paged.paged_kv_block_size_elements_per_device.empty())
    text += fmt::format(", \"paged_kv_block_size_elements_per_device\": {}",
                        List(paged.paged_kv_block_size_elements_per_device));
  return text + "}";
}

Result<std::vector<int64_t>> ReadBatchSizes(const Fields& fields, std::string_view key) {
  if (!fields.Has(key)) return Fail(InvalidArgument(fmt::format("\"{}\" is missing", key)));
  TESSERA_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, fields.Ints(key, 1024, 1, 1 << 20));
  if (sizes.empty()) return Fail(InvalidArgument(fmt::format("\"{}\" is empty", key)));
  if (!std::is_sorted(sizes.begin(), sizes.end()))
    return Fail(InvalidArgument(fmt::format("\"{}\" is not ascending", key)));
  return sizes;
}

Result<PagedKvCacheConfig> ReadPaged(const Fields& fields, const std::string& attn_dtype) {
  PagedKvCacheConfig paged;
  TESSERA_ASSIGN_OR_RETURN(paged.attention_head_count_kv,
                           fields.Int("attention_head_count_kv", 1, kMaxHeads));
  TESSERA_ASSIGN_OR_RETURN(paged.block_seq_stride,
                           fields.Int("block_seq_stride", 1, kMaxPageTokens));
  TESSERA_ASSIGN_OR_RETURN(paged.device_block_count,
                           fields.Int("device_block_count", 1, int64_t{1} << 32));
  // Until 3.3 one dtype served both.
  TESSERA_ASSIGN_OR_RETURN(paged.kv_cache_dtype, fields.TextOr("kv_cache_dtype", attn_dtype));
  TESSERA_ASSIGN_OR_RETURN(
      paged.paged_kv_block_size_elements_per_device,
      fields.Ints("paged_kv_block_size_elements_per_device", 4096, 1, int64_t{1} << 40));
  return paged;
}

Result<std::string> ReadNormalization(const Fields& fields) {
  TESSERA_ASSIGN_OR_RETURN(std::string text, fields.TextOr("logits_normalization", "none"));
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  constexpr std::array<std::string_view, 3> kKnown = {"none", "softmax", "log_softmax"};
  if (std::find(kKnown.begin(), kKnown.end(), text) == kKnown.end())
    return Fail(InvalidArgument(fmt::format(
        "\"logits_normalization\" is \"{:.40}\", expected none, softmax or log_softmax", text)));
  return text;
}

Result<ServingConfig> ReadDocument(const json::Value& document) {
  TESSERA_ASSIGN_OR_RETURN(const Fields fields, Fields::Of(document, ""));
  TESSERA_RETURN_IF_ERROR(fields.OnlyKnown(
      {"module_name", "module_abi_version", "max_seq_len", "attn_head_dim", "prefill_batch_sizes",
       "has_prefill_position", "decode_batch_sizes", "transformer_block_count",
       "logits_normalization", "top_k", "attn_dtype", "paged_kv_cache"}));
  ServingConfig config;
  TESSERA_ASSIGN_OR_RETURN(config.module_name, fields.TextOr("module_name", "module"));
  TESSERA_ASSIGN_OR_RETURN(config.module_abi_version,
                           fields.IntOr("module_abi_version", 1, 0, 1 << 20));
  TESSERA_ASSIGN_OR_RETURN(config.max_seq_len, fields.Int("max_seq_len", 1, kMaxContext));
  TESSERA_ASSIGN_OR_RETURN(config.attn_head_dim, fields.Int("attn_head_dim", 1, kMaxHeadDim));
  TESSERA_ASSIGN_OR_RETURN(config.prefill_batch_sizes,
                           ReadBatchSizes(fields, "prefill_batch_sizes"));
  TESSERA_ASSIGN_OR_RETURN(config.has_prefill_position,
                           fields.BoolOr("has_prefill_position", false));
  TESSERA_ASSIGN_OR_RETURN(config.decode_batch_sizes, ReadBatchSizes(fields, "decode_batch_sizes"));
  TESSERA_ASSIGN_OR_RETURN(config.transformer_block_count,
                           fields.Int("transformer_block_count", 1, kMaxLayers));
  TESSERA_ASSIGN_OR_RETURN(config.logits_normalization, ReadNormalization(fields));
  if (fields.Has("top_k")) {
    TESSERA_ASSIGN_OR_RETURN(config.top_k, fields.Int("top_k", 1, kMaxDimension));
  }
  TESSERA_ASSIGN_OR_RETURN(config.attn_dtype, fields.TextOr("attn_dtype", "float16"));
  bool is_seed = std::ranges::none_of(kNewerKeys, [&](auto key) { return fields.Has(key); });
  if (fields.Has("paged_kv_cache")) {
    TESSERA_ASSIGN_OR_RETURN(const Fields paged, fields.Object("paged_kv_cache"));
    TESSERA_ASSIGN_OR_RETURN(config.paged_kv_cache, ReadPaged(paged, config.attn_dtype));
    is_seed &= std::ranges::none_of(kNewerPagedKeys, [&](auto key) { return paged.Has(key); });
  }
  config.generation = is_seed ? ConfigGeneration::kSeed : ConfigGeneration::kCurrent;
  return config;
}

}  // namespace

std::string WriteServingConfig(const ServingConfig& config) {
  const bool is_current = config.generation == ConfigGeneration::kCurrent;
  std::string text = fmt::format(
      "{{\"module_name\": {}, \"module_abi_version\": {}, \"max_seq_len\": {}, "
      "\"attn_head_dim\": {}, \"prefill_batch_sizes\": {}",
      Quote(config.module_name), config.module_abi_version, config.max_seq_len,
      config.attn_head_dim, List(config.prefill_batch_sizes));
  if (is_current)
    text += fmt::format(", \"has_prefill_position\": {}", config.has_prefill_position);
  text += fmt::format(", \"decode_batch_sizes\": {}, \"transformer_block_count\": {}",
                      List(config.decode_batch_sizes), config.transformer_block_count);
  if (is_current)
    text += fmt::format(", \"logits_normalization\": {}, \"top_k\": {}",
                        Quote(config.logits_normalization),
                        config.top_k ? fmt::to_string(*config.top_k) : "null");
  if (config.attn_dtype != "float16")
    text += fmt::format(", \"attn_dtype\": {}", Quote(config.attn_dtype));
  if (config.paged_kv_cache)
    text += fmt::format(", \"paged_kv_cache\": {}",
                        WritePaged(*config.paged_kv_cache, config.generation));
  return text + "}";
}

Result<ServingConfig> ReadServingConfig(std::string_view text, std::string_view where) {
  json::Limits limits;
  limits.max_bytes = kMaxDocumentBytes;
  TESSERA_ASSIGN_OR_RETURN(const json::Value document, json::Parse(text, limits, where));
  Result<ServingConfig> config = ReadDocument(document);
  if (!config.has_value()) return Fail(config.error().WithContext(std::string(where)));
  return config;
}

}  // namespace tessera::bundle
