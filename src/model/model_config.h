// SPDX-License-Identifier: Apache-2.0
//
// ModelConfig: what a model computes, as plain data, with every default already filled in. The
// vocabulary of variations of all families; a family (families/) only says which of them it uses.
// Made by ReadHfConfig (hf_config.h) or ReadGgufConfig (gguf_config.h), checked by CheckConfig.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "graph/ir.h"

namespace tessera::model {

// How positions beyond the trained context are mapped; see rope.h for the formulas.
struct NoRopeScaling {
  bool operator==(const NoRopeScaling&) const = default;
};
struct LinearRopeScaling {
  double factor = 1;
  bool operator==(const LinearRopeScaling&) const = default;
};
struct Llama3RopeScaling {
  double factor = 1;
  double low_frequency_factor = 1;
  double high_frequency_factor = 4;
  double original_context = 8192;
  bool operator==(const Llama3RopeScaling&) const = default;
};
struct YarnRopeScaling {
  double factor = 1;
  double original_context = 0;
  double beta_fast = 32;
  double beta_slow = 1;
  double attention_factor = 1;  // Resolved: explicit, or 0.1 ln(factor) + 1.
  bool truncate = true;         // Whether the ramp's ends are rounded to whole pairs.
  bool operator==(const YarnRopeScaling&) const = default;
};
/// Divisors of the inverse frequencies, one a pair (GGUF rope_freqs.weight).
struct RopeDivisors {
  std::vector<double> divisors;  // [rotary_dim / 2]
  bool operator==(const RopeDivisors&) const = default;
};
using RopeScaling = std::variant<NoRopeScaling, LinearRopeScaling, Llama3RopeScaling,
                                 YarnRopeScaling, RopeDivisors>;

struct RopeConfig {
  double theta = 10000;
  int64_t rotary_dim = 0;
  graph::RopeStyle style = graph::RopeStyle::kHalf;
  RopeScaling scaling = NoRopeScaling{};
  bool operator==(const RopeConfig&) const = default;
};

struct AttentionConfig {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  bool qkv_bias = false;
  bool output_bias = false;
  bool qk_norm = false;  // RMS norm of each head of q and k, before rope; one weight [head_dim].
  double scale = 0;      // Of the scores.
  std::optional<double> softcap;
  /// Positions a token sees in the layers with `window_layers[layer]`; others see all.
  std::optional<int64_t> window;
  std::vector<bool> window_layers;  // [layers]; empty without window.
  bool operator==(const AttentionConfig&) const = default;
};

enum class Activation : uint8_t { kSilu, kGeluTanh };

struct FfnConfig {
  int64_t intermediate = 0;
  Activation activation = Activation::kSilu;
  bool gated = true;  // down(act(gate(x)) * up(x)); otherwise down(act(up(x))).
  bool bias = false;
  bool operator==(const FfnConfig&) const = default;
};

struct EmbeddingConfig {
  bool tied = false;  // The output head is the embedding table.
  double scale = 1;   // Of the embedding.
  bool operator==(const EmbeddingConfig&) const = default;
};

/// Which names the weights have: those of Hugging Face repositories or those of GGUF.
enum class Naming : uint8_t { kHuggingFace, kGguf };

struct ModelConfig {
  std::string family;  // A row of families.h: "llama", "mistral", "qwen2", "qwen3".
  Naming naming = Naming::kHuggingFace;
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t vocab_size = 0;      // Rows of the embedding table.
  int64_t context_length = 0;  // Positions the model was made for.
  double norm_eps = 0;
  double residual_scale = 1;  // Of what attention and ffn add to the residual stream.
  double logit_scale = 1;
  std::optional<double> logit_softcap;
  AttentionConfig attention;
  RopeConfig rope;
  FfnConfig ffn;
  EmbeddingConfig embedding;

  bool operator==(const ModelConfig&) const = default;
};

/// Ranges and relations that every config must keep (positive sizes under limits.h, kv_heads
/// divides heads, ...). kInvalidArgument names the field by its name here.
Status CheckConfig(const ModelConfig& config);

}  // namespace tessera::model
