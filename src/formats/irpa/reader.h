// SPDX-License-Identifier: Apache-2.0
//
// IRPA reader: an archive (archive.h) as a ParameterIndex. An entry with tensor metadata
// (entry_metadata.h) becomes a tensor, any other a blob; the text is kept as its note. SKIP entries
// are left out, duplicate names kept in order. Alignment is not checked: it varies.
#pragma once

#include <filesystem>
#include <memory>

#include "formats/parameter_index.h"

namespace tessera::formats::irpa {

/// Parses `bytes`, which must outlive the index. `path` is for messages and for files(). Errors as
/// of ReadArchive and ParseEntryMetadata, and kInvalidArgument when dtype and shape do not give the
/// entry's length. Messages name the file and the entry or offset.
Result<ParameterIndex> Parse(ByteSpan bytes, const std::filesystem::path& path);

/// The same for a mapping, which the index keeps.
Result<ParameterIndex> Open(std::shared_ptr<const MappedFile> mapping);

}  // namespace tessera::formats::irpa
