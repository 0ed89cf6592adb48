// SPDX-License-Identifier: Apache-2.0
//
// What the weights of a decoder are called in a file, as data. Per-layer names are joined as
// layer_prefix + layer + "." + name + (".weight" or ".bias").
#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "model/model_config.h"

namespace tessera::model {

struct WeightNames {
  std::string_view embedding;   // [vocab_size, hidden]
  std::string_view final_norm;  // [hidden]
  std::string_view head;        // [vocab_size, hidden], absent when tied
  std::string_view layer_prefix;
  std::string_view attn_norm;  // [hidden]
  std::string_view q;          // [heads * head_dim, hidden]
  std::string_view k;          // [kv_heads * head_dim, hidden]
  std::string_view v;          // [kv_heads * head_dim, hidden]
  std::string_view o;          // [hidden, heads * head_dim]
  std::string_view q_norm;     // [head_dim]
  std::string_view k_norm;     // [head_dim]
  std::string_view ffn_norm;   // [hidden]
  std::string_view gate;       // [intermediate, hidden]
  std::string_view up;         // [intermediate, hidden]
  std::string_view down;       // [hidden, intermediate]

  std::string Weight(std::string_view name) const { return fmt::format("{}.weight", name); }
  std::string LayerWeight(int64_t layer, std::string_view name) const {
    return fmt::format("{}{}.{}.weight", layer_prefix, layer, name);
  }
  std::string LayerBias(int64_t layer, std::string_view name) const {
    return fmt::format("{}{}.{}.bias", layer_prefix, layer, name);
  }
};

inline constexpr WeightNames kHfNames = {
    .embedding = "model.embed_tokens",
    .final_norm = "model.norm",
    .head = "lm_head",
    .layer_prefix = "model.layers.",
    .attn_norm = "input_layernorm",
    .q = "self_attn.q_proj",
    .k = "self_attn.k_proj",
    .v = "self_attn.v_proj",
    .o = "self_attn.o_proj",
    .q_norm = "self_attn.q_norm",
    .k_norm = "self_attn.k_norm",
    .ffn_norm = "post_attention_layernorm",
    .gate = "mlp.gate_proj",
    .up = "mlp.up_proj",
    .down = "mlp.down_proj",
};

inline constexpr WeightNames kGgufNames = {
    .embedding = "token_embd",
    .final_norm = "output_norm",
    .head = "output",
    .layer_prefix = "blk.",
    .attn_norm = "attn_norm",
    .q = "attn_q",
    .k = "attn_k",
    .v = "attn_v",
    .o = "attn_output",
    .q_norm = "attn_q_norm",
    .k_norm = "attn_k_norm",
    .ffn_norm = "ffn_norm",
    .gate = "ffn_gate",
    .up = "ffn_up",
    .down = "ffn_down",
};

/// The divisors of the inverse frequencies in a GGUF, see RopeDivisors.
inline constexpr std::string_view kGgufRopeFreqs = "rope_freqs.weight";

}  // namespace tessera::model
