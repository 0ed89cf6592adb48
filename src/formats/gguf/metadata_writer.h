// SPDX-License-Identifier: Apache-2.0
//
// Internal to gguf/: the key-value section.
#pragma once

#include "base/bytes.h"
#include "formats/metadata.h"

namespace tessera::formats::gguf {

void WriteString(ByteWriter& out, std::string_view text);
/// All pairs in order, without their count.
void WriteMetadata(ByteWriter& out, const Metadata& metadata);

}  // namespace tessera::formats::gguf
