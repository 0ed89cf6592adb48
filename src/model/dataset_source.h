// SPDX-License-Identifier: Apache-2.0
//
// A sharktank dataset as a model: properties -> config, logical tensors -> weights, tokenizer from
// tokenizer.json beside it or from the properties.
#pragma once

#include <filesystem>

#include "model/open.h"

namespace tessera::model {

/// `source.index` holds the archive with its rank files and becomes the index of the logical
/// tensors. A dataset without any tokenizer opens, with a warning and an empty one.
Status OpenDataset(const std::filesystem::path& folder, ModelSource& source);

/// What the properties of an archive have of a GGUF's metadata (its tokenizer, its templates), as
/// an index without tensors. Empty metadata when they are a config.json.
Result<formats::ParameterIndex> DatasetMetadata(const formats::ParameterIndex& archive);

}  // namespace tessera::model
