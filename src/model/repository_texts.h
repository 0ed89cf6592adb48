// SPDX-License-Identifier: Apache-2.0
//
// The texts beside the weights of a repository into a ModelSource: tokenizer.json and its config,
// generation_config.json, chat templates, special tokens.
#pragma once

#include <filesystem>

#include "base/json.h"
#include "model/open.h"

namespace tessera::model {

/// A JSON file of `folder`; its text goes to `source.files`. Null when an optional one is absent.
Result<json::Value> TakeJsonFile(const std::filesystem::path& folder, ModelSource& source,
                                 std::string_view name, uint64_t max_bytes, bool required);

/// `config` is config.json and may be null; source.config must be read already. kNotFound without
/// tokenizer.json.
Status ReadRepositoryTexts(const std::filesystem::path& folder, const json::Object* config,
                           ModelSource& source);

}  // namespace tessera::model
