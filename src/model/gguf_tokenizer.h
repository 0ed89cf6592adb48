// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.ggml.* of a GGUF's metadata -> GgufTokenizer.
#pragma once

#include "formats/metadata.h"
#include "model/open.h"

namespace tessera::model {

/// Spans point into `metadata`. kNotFound or kInvalidArgument names the key.
Result<GgufTokenizer> ReadGgufTokenizer(const formats::Metadata& metadata);

}  // namespace tessera::model
