// SPDX-License-Identifier: Apache-2.0
//
// Qwen3, dense: no biases, RMS norm of each head of q and k, head_dim given.
#include "model/families/all.h"

namespace tessera::model {
namespace {
constexpr std::string_view kModelTypes[] = {"qwen3"};
constexpr std::string_view kArchitectures[] = {"Qwen3ForCausalLM"};
constexpr std::string_view kGgufArchitectures[] = {"qwen3"};
}  // namespace

const Family kQwen3 = {
    .name = "qwen3",
    .model_types = kModelTypes,
    .hf_architectures = kArchitectures,
    .gguf_architectures = kGgufArchitectures,
    .qk_norm = true,
    .has_attention_bias_key = true,
    .window = WindowRule::kOptIn,
    .default_window = 4096,
    .default_context = 32768,
    .default_head_dim = 128,
};

}  // namespace tessera::model
