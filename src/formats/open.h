// SPDX-License-Identifier: Apache-2.0
//
// The one door to parameter files: decides the format by the file's first bytes, parses, joins
// shards.
#pragma once

#include <filesystem>
#include <span>

#include "formats/parameter_index.h"

namespace tessera::formats {

/// The format by the first bytes: "GGUF", "IRPA", or a safetensors header length followed by an
/// opening brace. `path` breaks the tie for files too short or too damaged to tell (by extension),
/// so that the parser's message says what is wrong. kInvalidArgument when neither tells.
Result<Format> DetectFormat(ByteSpan bytes, const std::filesystem::path& path);

/// Opens one file, or a folder: there `model.safetensors.index.json` names the shards; without it
/// the single *.safetensors, *.gguf (or GGUF split) or *.irpa (besides rank files) is taken, in
/// this order of preference. A `*.safetensors.index.json` brings in its shards, one piece of a GGUF
/// split ("-00001-of-00003.gguf") the others; an .irpa brings in its ".rankN.irpa" files when
/// `with_ranks`.
/// Errors name the file, the offset or field, and what was expected; see the parsers.
Result<ParameterIndex> Open(const std::filesystem::path& path, bool with_ranks = false);

/// Several files as one index, in order; duplicate names are refused.
Result<ParameterIndex> OpenAll(std::span<const std::filesystem::path> paths);

}  // namespace tessera::formats
