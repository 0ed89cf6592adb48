// SPDX-License-Identifier: Apache-2.0
//
// Internal to tensor/: one decoder per format, block by block. `block` holds
// Info(dtype).block_bytes bytes at any alignment, `out` takes Info(dtype).block_elements values.
// The order of the float32 operations is part of each format's meaning here: other orders round
// differently.
#pragma once

#include <cstdint>
#include <cstring>

#include "tensor/dtype.h"

namespace tessera::tensor {

using BlockDecoder = void (*)(const uint8_t* block, float* out);

// Each returns null for a type of another family.
BlockDecoder FindPlainDecoder(DType dtype);       // convert_plain.cc: floats, integers.
BlockDecoder FindLegacyDecoder(DType dtype);      // convert_legacy.cc: Q4_0 to Q8_0.
BlockDecoder FindKQuantDecoder(DType dtype);      // convert_k_quants.cc: Q2_K to Q6_K.
BlockDecoder FindIqDecoder(DType dtype);          // convert_iq.cc: IQ1 to IQ4.
BlockDecoder FindSmallFloatDecoder(DType dtype);  // convert_small_float.cc: TQ, MXFP4, NVFP4.

/// Unaligned little-endian load.
template <class T>
inline T Load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

}  // namespace tessera::tensor
