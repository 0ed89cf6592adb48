// SPDX-License-Identifier: Apache-2.0
//
// The stored form of a tokenizer: one flat, versioned, checksummed file that is mapped and used in
// place, so that opening costs milliseconds whatever the size of the vocabulary. BPE only; other
// models keep tokenizer.json. The layout stands in textkit/src/stored/table.rs.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/tokenizer.h"

namespace tessera::text {

/// The stored form of `tokenizer`, proven equal before it is returned: every token both ways, every
/// merge, and the ids of a sample that visits all tokens and all characters. kUnimplemented says
/// why the tokenizer has none (its model is not BPE), kInternal that the proof failed.
Result<std::string> MakeTokenizerTable(const Tokenizer& tokenizer);

/// Maps the file; the mapping lives as long as anything that uses the tokenizer. kInvalidArgument
/// for a truncated or altered file, kUnimplemented for another version of the format,
/// kResourceExhausted past limits.h; errors of MappedFile::Open.
Result<std::shared_ptr<const Tokenizer>> OpenTokenizerTable(const std::filesystem::path& path);

/// The same for bytes that are copied.
Result<std::shared_ptr<const Tokenizer>> ReadTokenizerTable(std::string_view bytes);

}  // namespace tessera::text
