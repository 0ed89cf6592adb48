// SPDX-License-Identifier: Apache-2.0
//
// config.json of a Hugging Face repository -> ModelConfig. What a key means and what its absence
// means follow the configuration classes of transformers. A key that this file does not know is
// refused by name unless it is in the list of keys without effect on the computation
// (hf_harmless_keys.h): guessing would give fluent nonsense.
#pragma once

#include "base/json.h"
#include "model/model_config.h"

namespace tessera::model {

/// A config that CheckConfig accepts. kUnimplemented names the model type, key or value that we
/// lack; kInvalidArgument names a key of the wrong kind, missing or out of range.
Result<ModelConfig> ReadHfConfig(const json::Object& config);

/// The same from text, under kMaxConfigBytes. `where` is the file's name for messages.
Result<ModelConfig> ParseHfConfig(std::string_view text, std::string_view where);

}  // namespace tessera::model
