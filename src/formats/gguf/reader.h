// SPDX-License-Identifier: Apache-2.0
//
// GGUF reader, versions 2 and 3, little-endian (the GGUF specification of ggml). Strict: a file is
// read as the specification says or refused. Counts and lengths are checked against the bytes that
// are left before memory is taken for them, offsets against the file with overflow-safe arithmetic,
// tensors must be aligned and must not overlap.
#pragma once

#include <filesystem>
#include <memory>

#include "formats/parameter_index.h"

namespace tessera::formats::gguf {

inline constexpr uint32_t kMagic = 0x46554747;  // "GGUF"

/// Parses `bytes`, which must outlive the index. `path` is for messages and for files().
/// kDataLoss for a file that ends too early; kInvalidArgument for contents that the format forbids;
/// kUnimplemented for an unknown version or tensor type; kResourceExhausted past a limit of
/// limits.h. Messages name the file, the offset and the field.
Result<ParameterIndex> Parse(ByteSpan bytes, const std::filesystem::path& path);

/// The same for a mapping, which the index keeps.
Result<ParameterIndex> Open(std::shared_ptr<const MappedFile> mapping);

}  // namespace tessera::formats::gguf
