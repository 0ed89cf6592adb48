// SPDX-License-Identifier: Apache-2.0
//
// GGUF splits: "model-00002-of-00005.gguf" files whose metadata carries split.no, split.count and
// split.tensors.count. Any one of them brings in the others.
#pragma once

#include <filesystem>

#include "formats/parameter_index.h"

namespace tessera::formats::gguf {

/// Opens `path`; when its metadata says that it is one of several, opens all of them in order, so
/// that metadata() is the first's. kNotFound for a missing sibling; kInvalidArgument when the
/// file's name does not follow the pattern or the pieces disagree.
Result<ParameterIndex> OpenWithSplits(const std::filesystem::path& path);

}  // namespace tessera::formats::gguf
