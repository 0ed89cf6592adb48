// SPDX-License-Identifier: Apache-2.0
//
// Metadata of a GGUF -> ModelConfig. Keys as in the GGUF specification, "<architecture>.*"; one
// under that prefix that this file does not know is refused by name.
#pragma once

#include "formats/parameter_index.h"
#include "model/model_config.h"

namespace tessera::model {

/// A config that CheckConfig accepts. Looks at the tensors too, where the metadata is silent: a
/// missing output.weight means tied embeddings, bias tensors mean biases, rope_freqs.weight holds
/// divisors of the rope frequencies, the embedding's rows are the vocabulary.
/// kUnimplemented names the architecture, key or value that we lack; kInvalidArgument and kNotFound
/// a key of the wrong kind, missing or out of range.
Result<ModelConfig> ReadGgufConfig(const formats::ParameterIndex& index);

}  // namespace tessera::model
