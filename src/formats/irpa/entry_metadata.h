// SPDX-License-Identifier: Apache-2.0
//
// The text that two writers attach to an IRPA entry so that its bytes become a tensor: a prefix and
// JSON. torch-based tools (and with them sharktank) write "PYTORCH:", iree.runtime "TENSORv0:".
// Readers use `type`, `dtype` and `shape` only: the two disagree about the rest.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace tessera::formats::irpa {

enum class MetadataStyle : uint8_t { kPytorch, kTensorV0 };

struct TensorType {
  tensor::DType dtype = tensor::DType::kU8;
  tensor::Shape shape;
};

/// Nothing when the text has neither prefix (empty, or another convention's): then the entry is a
/// blob. kInvalidArgument for a prefix followed by something else than described above,
/// kUnimplemented for an unknown dtype.
Result<std::optional<TensorType>> ParseEntryMetadata(std::string_view text);

/// The text that the style's own writer makes, byte for byte. kUnimplemented for dtypes that torch
/// has no name for (block formats).
Result<std::string> MakeEntryMetadata(MetadataStyle style, const TensorType& type);

}  // namespace tessera::formats::irpa
