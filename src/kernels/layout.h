// SPDX-License-Identifier: Apache-2.0
//
// Offsets of the packed layout P8 (pack.h), shared by packing, reference and vector kernels.
// Everything here is forced inline: files built for different ISAs must not share a symbol.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

#define TESSERA_KERNEL_INLINE static inline __attribute__((always_inline))

namespace tessera::kernels {

using tensor::DType;

/// Parts of one block of 32 inputs x 8 rows. Null when the format lacks the part.
struct BlockParts {
  const std::byte* d;      // 8 f16 scales
  const std::byte* m;      // 8 f16 minima
  const std::byte* codes;  // nibbles [4][8 rows][4] or int8 [8][8 rows][4]
  const std::byte* high;   // fifth bits [8 rows][4]: bit t of byte i = input 4t + i
};

/// Formats whose block of 32 stands alone. `kPaired`: two blocks share a unit, scales first, so
/// that every 32-byte load of codes is aligned.
template <bool paired, bool has_min, int bits, int zero>
struct SimpleFormat {
  static constexpr bool kPaired = paired;
  static constexpr bool kHasMin = has_min;
  static constexpr int kBits = bits;
  static constexpr int kZero = zero;  // Subtracted from a stored code.
  static constexpr int64_t kCodeBytes = bits == 8 ? 256 : 128;
  static constexpr int64_t kHighBytes = bits == 5 ? 32 : 0;
  static constexpr int64_t kBytes = 16 + (has_min ? 16 : 0) + kCodeBytes + kHighBytes;
};

template <DType dtype>
struct Format;
template <>
struct Format<DType::kQ4_0> : SimpleFormat<true, false, 4, 8> {};
template <>
struct Format<DType::kQ4_1> : SimpleFormat<false, true, 4, 0> {};
template <>
struct Format<DType::kQ5_0> : SimpleFormat<true, false, 5, 16> {};
template <>
struct Format<DType::kQ5_1> : SimpleFormat<false, true, 5, 0> {};
template <>
struct Format<DType::kQ8_0> : SimpleFormat<true, false, 8, 0> {};

/// Parts of block `b` of a group with `blocks` blocks.
template <class F>
TESSERA_KERNEL_INLINE BlockParts PartsOf(const std::byte* group, int64_t blocks, int64_t b) {
  if constexpr (F::kPaired) {
    const int64_t first = b & ~int64_t{1};
    const int64_t in = b & 1;
    const int64_t count = blocks - first >= 2 ? 2 : 1;
    const std::byte* unit = group + first * F::kBytes;
    const std::byte* codes = unit + 16 * count;
    return {unit + 16 * in, nullptr, codes + in * F::kCodeBytes,
            F::kHighBytes ? codes + count * F::kCodeBytes + in * F::kHighBytes : nullptr};
  } else {
    const std::byte* unit = group + b * F::kBytes;
    return {unit, unit + 16, unit + 32, F::kHighBytes ? unit + 32 + F::kCodeBytes : nullptr};
  }
}

/// K-quants: super-blocks of 256 inputs x 8 rows.
struct SuperParts {
  const std::byte* d;       // 8 f16
  const std::byte* dmin;    // 8 f16 (Q4_K, Q5_K)
  const std::byte* scales;  // Q4_K, Q5_K: the file's 12 bytes as [3][8 rows][4]; Q6_K: int8
                            // [8 blocks][8 rows][2]
  const std::byte* codes;   // [8 blocks][4][8 rows][4] nibbles
  const std::byte* high;    // Q5_K: [8 blocks][8 rows][4]; Q6_K: [8 blocks][2][8 rows][4]: bits
                            // 2t.. of byte i of plane p = upper bits of input 4 (4p + t) + i
};

inline constexpr int64_t kSuperBlock = 256;

TESSERA_KERNEL_INLINE constexpr int64_t SuperBytes(DType dtype) {
  switch (dtype) {
    case DType::kQ4_K:
      return 16 + 16 + 96 + 1024;
    case DType::kQ5_K:
      return 16 + 16 + 96 + 1024 + 256;
    case DType::kQ6_K:
      return 16 + 128 + 1024 + 512;
    default:
      return 0;
  }
}

template <DType dtype>
TESSERA_KERNEL_INLINE SuperParts SuperPartsOf(const std::byte* group, int64_t index) {
  const std::byte* p = group + index * SuperBytes(dtype);
  if constexpr (dtype == DType::kQ6_K) return {p, nullptr, p + 16, p + 144, p + 144 + 1024};
  return {p, p + 16, p + 32, p + 128, dtype == DType::kQ5_K ? p + 128 + 1024 : nullptr};
}

}  // namespace tessera::kernels
