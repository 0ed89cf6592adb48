// SPDX-License-Identifier: Apache-2.0
//
// Mistral 7B (v0.1 has a sliding window), Nemo 12B (head_dim is given and is not hidden / heads)
// and Small. A GGUF of these says that it is a llama.
#include "model/families/all.h"

namespace tessera::model {
namespace {
constexpr std::string_view kModelTypes[] = {"mistral"};
constexpr std::string_view kArchitectures[] = {"MistralForCausalLM"};
}  // namespace

const Family kMistral = {
    .name = "mistral",
    .model_types = kModelTypes,
    .hf_architectures = kArchitectures,
    .gguf_architectures = {},
    .gguf_rope_style = graph::RopeStyle::kInterleaved,
    .window = WindowRule::kAllLayers,
    .default_window = 4096,
    .default_context = 131072,
};

}  // namespace tessera::model
