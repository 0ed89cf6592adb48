// SPDX-License-Identifier: Apache-2.0
//
// What the parsers of all formats share: how bytes or a mapping become a SourceFile, and that
// errors carry the file's name.
#pragma once

#include <filesystem>
#include <memory>

#include "formats/parameter_index.h"

namespace tessera::formats {

/// Views `bytes`, which must outlive the index.
SourceFile FromBytes(Format format, ByteSpan bytes, const std::filesystem::path& path);
/// Keeps the mapping.
SourceFile FromMapping(Format format, std::shared_ptr<const MappedFile> mapping);

using ParseFn = Result<ParameterIndex> (*)(SourceFile file);
/// `parse(file)` with the file's name as the context of an error.
Result<ParameterIndex> ParseNamed(ParseFn parse, SourceFile file);

}  // namespace tessera::formats
