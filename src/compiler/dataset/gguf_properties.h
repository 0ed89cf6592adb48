// SPDX-License-Identifier: Apache-2.0
//
// The properties of the dataset that is made of a model: those of a dataset stay, the metadata of a
// GGUF goes in whole, of a Hugging Face repository the same keys are made from its config.
#pragma once

#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "model/open.h"

namespace tessera::compiler {

/// rope_freqs.weight of a model whose rope frequencies are divided one by one (Llama 3.1 and
/// later); empty for others.
std::vector<float> RopeDivisorsOf(const model::ModelConfig& config);

/// With the dataset's version, and "tensor_parallelism_size" when `ranks` > 1.
/// kInvalidArgument for metadata that JSON cannot hold, kUnimplemented for a config that GGUF keys
/// cannot say (a softcap, windows).
Result<json::Object> MakeDatasetProperties(const model::ModelSource& source, int64_t ranks);

}  // namespace tessera::compiler
