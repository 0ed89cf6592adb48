// SPDX-License-Identifier: Apache-2.0
//
// Qwen2 and Qwen2.5: a llama with biases on q, k and v.
#include "model/families/all.h"

namespace tessera::model {
namespace {
constexpr std::string_view kModelTypes[] = {"qwen2"};
constexpr std::string_view kArchitectures[] = {"Qwen2ForCausalLM"};
constexpr std::string_view kGgufArchitectures[] = {"qwen2"};
}  // namespace

const Family kQwen2 = {
    .name = "qwen2",
    .model_types = kModelTypes,
    .hf_architectures = kArchitectures,
    .gguf_architectures = kGgufArchitectures,
    .qkv_bias = true,
    .window = WindowRule::kOptIn,
    .default_window = 4096,
    .default_context = 32768,
};

}  // namespace tessera::model
