// SPDX-License-Identifier: Apache-2.0
//
// The way back from float32, for writers and tests: round to nearest within each block, with the
// scale taken from the block's extreme. Equal bytes to ggml's reference encoders for these types.
// Pure functions: any thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"
#include "tensor/dtype.h"

namespace tessera::tensor {

/// F32, F16, BF16, Q8_0, Q4_0, Q4_1.
bool CanQuantise(DType dtype);

/// Encodes whole rows laid end to end; `values.size()` must be a multiple of the block size.
/// kInvalidArgument when it is not, kUnimplemented (naming the type) when !CanQuantise. Values must
/// be finite for the block types.
Result<std::vector<std::byte>> Quantise(DType dtype, std::span<const float> values);

}  // namespace tessera::tensor
