// SPDX-License-Identifier: Apache-2.0
//
// ServingConfig: config.json of a bundle, in the shape that shortfin's LLM server reads (its
// "ModelParams"): an unknown key at the top is an error there, so this writes exactly those keys,
// in one line. A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tessera::bundle {

struct PagedKvCacheConfig {
  int64_t attention_head_count_kv = 0;
  int64_t block_seq_stride = 0;    // Positions of a page.
  int64_t device_block_count = 0;  // Pages.
  std::string kv_cache_dtype = "float16";
  /// Elements of one page on each device, both K and V of all layers.
  std::vector<int64_t> paged_kv_block_size_elements_per_device;

  bool operator==(const PagedKvCacheConfig&) const = default;
};

/// Which exporter's keys a file has. A server refuses keys at the top that it does not know, so one
/// of February 2025 reads kSeed only; later ones read both.
enum class ConfigGeneration : uint8_t {
  kSeed,     // 3.2: without has_prefill_position, logits_normalization, top_k, and in the paged
             // cache kv_cache_dtype and element counts. All of them mean their defaults.
  kCurrent,  // 3.8
};

struct ServingConfig {
  ConfigGeneration generation = ConfigGeneration::kCurrent;
  std::string module_name = "module";
  int64_t module_abi_version = 1;
  int64_t max_seq_len = 0;  // Prompt and output together.
  int64_t attn_head_dim = 0;
  std::vector<int64_t> prefill_batch_sizes;  // Ascending.
  bool has_prefill_position = false;
  std::vector<int64_t> decode_batch_sizes;  // Ascending.
  int64_t transformer_block_count = 0;
  std::string logits_normalization = "none";  // none, softmax, log_softmax
  std::optional<int64_t> top_k;               // Nothing: full logits.
  std::string attn_dtype = "float16";
  std::optional<PagedKvCacheConfig> paged_kv_cache;

  bool operator==(const ServingConfig&) const = default;
};

/// One line without a newline at its end, keys in the exporter's order, ", " and ": " between
/// tokens; attn_dtype only when it is not the default, as the exporter does. In the shape of its
/// generation; of kSeed the keys that it lacks must have their defaults, as ReadServingConfig sees
/// to.
std::string WriteServingConfig(const ServingConfig& config);

/// Reads what any release of the exporter wrote: absent keys take their defaults, and a file with
/// none of the newer ones is of the older generation.
/// kInvalidArgument naming the key for an unknown one at the top level (members of paged_kv_cache
/// that we do not know are ignored, as shortfin does), a wrong type or a value out of range.
Result<ServingConfig> ReadServingConfig(std::string_view text, std::string_view where);

}  // namespace tessera::bundle
