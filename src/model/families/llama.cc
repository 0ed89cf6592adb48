// SPDX-License-Identifier: Apache-2.0
//
// Llama 1, 2, 3, 3.1, 3.2 (text) and 3.3, SmolLM and SmolLM2, TinyLlama and other models of this
// architecture. The GGUF converter permutes the rows of q and k so that rope pairs lie side by
// side.
#include "model/families/all.h"

namespace tessera::model {
namespace {
constexpr std::string_view kModelTypes[] = {"llama"};
constexpr std::string_view kArchitectures[] = {"LlamaForCausalLM", "LLaMAForCausalLM"};
constexpr std::string_view kGgufArchitectures[] = {"llama"};
}  // namespace

const Family kLlama = {
    .name = "llama",
    .model_types = kModelTypes,
    .hf_architectures = kArchitectures,
    .gguf_architectures = kGgufArchitectures,
    .gguf_rope_style = graph::RopeStyle::kInterleaved,
    .has_attention_bias_key = true,
    .has_mlp_bias_key = true,
    .kv_heads_default_to_heads = true,
    .default_context = 2048,
};

}  // namespace tessera::model
