// SPDX-License-Identifier: Apache-2.0
//
// The one door to parameter files: decides the format by the file's first bytes (the extension only
// breaks ties), parses, joins shards.
#pragma once

#include <filesystem>
#include <span>

#include "formats/parameter_index.h"

namespace tessera::formats {

/// Opens one file, or a folder: there `model.safetensors.index.json` names the shards; without it
/// the single *.safetensors, *.gguf or *.irpa is taken. A `model.safetensors.index.json` or one
/// shard of a GGUF split ("-00001-of-00003.gguf") brings in the others; an .irpa brings in its
/// ".rankN.irpa" files when `with_ranks`.
/// Errors name the file, the offset or field, and what was expected; see the parsers.
Result<ParameterIndex> Open(const std::filesystem::path& path, bool with_ranks = false);

/// Several files as one index, in order; duplicate names are refused.
Result<ParameterIndex> OpenAll(std::span<const std::filesystem::path> paths);

}  // namespace tessera::formats
