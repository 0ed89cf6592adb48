// SPDX-License-Identifier: Apache-2.0
//
// Internal to gguf/: reads the key-value section. Errors name the offset and the key.
#pragma once

#include "base/bytes.h"
#include "formats/metadata.h"

namespace tessera::formats::gguf {

/// Reads `count` pairs from the reader's position on.
Result<Metadata> ReadMetadata(ByteReader& reader, uint64_t count);

/// A length-prefixed string, viewed in place. `limit` bounds its bytes.
Result<std::string_view> ReadString(ByteReader& reader, uint64_t limit, std::string_view field);

}  // namespace tessera::formats::gguf
