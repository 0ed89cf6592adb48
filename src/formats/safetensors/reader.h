// SPDX-License-Identifier: Apache-2.0
//
// safetensors reader: u64 header length, JSON header, data (github.com/huggingface/safetensors).
// As strict as the reference library: the data of the tensors must cover the data section exactly,
// without holes and overlaps. Unknown members of a tensor's object are ignored, as it does.
#pragma once

#include <filesystem>
#include <memory>

#include "formats/parameter_index.h"

namespace tessera::formats::safetensors {

/// Parses `bytes`, which must outlive the index. `path` is for messages and for files(). Entries
/// are in the order of their data.
/// kDataLoss for a file that ends too early; kInvalidArgument for contents that the format forbids;
/// kUnimplemented for an unknown dtype; kResourceExhausted past a limit of limits.h. Messages name
/// the file and the tensor or offset.
Result<ParameterIndex> Parse(ByteSpan bytes, const std::filesystem::path& path);

/// The same for a mapping, which the index keeps.
Result<ParameterIndex> Open(std::shared_ptr<const MappedFile> mapping);

}  // namespace tessera::formats::safetensors
