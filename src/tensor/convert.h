// SPDX-License-Identifier: Apache-2.0
//
// Exact conversions to float32: the meaning of every format, and the oracle of the kernels.
// Integer arithmetic and float32 operations happen in the order of the format's definition, so
// results equal the reference reader bit for bit. Not the fast path: kernels read blocks natively.
// Pure functions: any thread.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "tensor/tensor_view.h"

namespace tessera::tensor {

float HalfToFloat(uint16_t bits);
/// Round to nearest even; overflow gives infinity, NaN stays NaN.
uint16_t FloatToHalf(float value);
float BFloat16ToFloat(uint16_t bits);
/// Round to nearest even; NaN stays NaN (quiet).
uint16_t FloatToBFloat16(float value);

/// Whether ToFloat knows the type. False for complex numbers, for ggml's activation formats (Q8_1,
/// Q8_K) and for Q1_0.
bool CanConvertToFloat(DType dtype);

/// Converts `out.size()` elements; `bytes` must hold exactly that many. 64-bit integers and
/// doubles round to nearest.
/// kInvalidArgument on a size mismatch, kUnimplemented (naming the type) when !CanConvertToFloat.
Status ToFloat(DType dtype, ByteSpan bytes, std::span<float> out);

/// Elements [row * columns, (row + 1) * columns) of the view; out.size() == columns.
/// kOutOfRange for a row that is not there.
Status RowToFloat(const TensorView& view, int64_t row, std::span<float> out);

}  // namespace tessera::tensor
