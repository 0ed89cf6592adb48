// SPDX-License-Identifier: Apache-2.0
//
// Unpacking one block of 32 inputs x 8 rows of each packed format into vectors: lane = row.
#pragma once

#include <type_traits>

#include "kernels/matmul.h"
#include "kernels/x86/vec_avx2.h"

namespace tessera::kernels {
namespace {

/// codes[t]: inputs 4t..4t+3 of the eight rows, as stored (zero point not removed).
struct Block {
  __m256i codes[8];
  __m256 d;        // scale
  __m256 m;        // minimum (formats that have one)
  __m256i scales;  // Q6_K: two int16 scales per row, of the two halves of the block
};

/// Fetches what lies `ahead` bytes behind block b of `bytes` bytes.
template <int64_t bytes>
TESSERA_KERNEL_INLINE void PrefetchBlock(const std::byte* group, int64_t b, int64_t ahead) {
  const std::byte* at = group + b * bytes + ahead;
  TESSERA_UNROLL
  for (int64_t line = 0; line < bytes; line += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(at + line), _MM_HINT_T0);
  }
}

/// Dot products of one block: [activation row][group], lane = weight row.
template <int R, int G>
struct Dots {
  __m256i s[R][G];
};

/// Where the codes of a block of 32 x 8 lie; `high` holds what 5 and 6 bits have above four.
struct CodePlanes {
  const std::byte* codes;
  const std::byte* high;
};

/// What an unpacked block is, for dot products.
struct U4 {
  static constexpr int kMaxSums = 8;  // products of 15 * 127 * 2 that fit into int16
};
struct U5 {
  static constexpr int kMaxSums = 4;
};
struct U6Halves {};  // two scales per block
struct S8 {};

TESSERA_KERNEL_INLINE void UnpackNibbles(const std::byte* codes, Block* block) {
  const __m256i low = _mm256_set1_epi8(15);
  TESSERA_UNROLL
  for (int c = 0; c < 4; ++c) {
    const __m256i x = LoadBytes(codes + 32 * c);
    block->codes[c] = _mm256_and_si256(x, low);
    block->codes[4 + c] = _mm256_and_si256(_mm256_srli_epi16(x, 4), low);
  }
}

/// Bit t of each byte of `high` becomes bit 4 of codes[t].
TESSERA_KERNEL_INLINE void AddFifthBits(const std::byte* high, Block* block) {
  const __m256i bits = LoadBytes(high);
  TESSERA_UNROLL
  for (int t = 0; t < 8; ++t) {
    const __m256i bit = _mm256_and_si256(bits, _mm256_set1_epi8(static_cast<char>(1 << t)));
    const __m256i fifth = t < 4 ? _mm256_slli_epi16(bit, 4 - t) : _mm256_srli_epi16(bit, t - 4);
    block->codes[t] = _mm256_or_si256(block->codes[t], fifth);
  }
}

/// A packed format as the matmul driver sees it: Codes, zero point, Load.
template <DType dtype>
struct Source {
  using F = Format<dtype>;
  using Codes = std::conditional_t<F::kBits == 4, U4, std::conditional_t<F::kBits == 5, U5, S8>>;
  static constexpr int64_t kBytes = F::kBytes;  // of a block of 32 x 8
  static constexpr bool kHasMin = F::kHasMin;
  static constexpr int kZero = F::kZero;

  static constexpr int kUnit = F::kPaired ? 2 : 1;  // Blocks that lie together.

  /// Block b of a group.
  TESSERA_KERNEL_INLINE void Load(const std::byte* group, int64_t blocks, int64_t b, Block* block) {
    Unpack(PartsOf<F>(group, blocks, b), block);
  }
  /// Block `in` of a whole unit: no address depends on the block's number.
  TESSERA_KERNEL_INLINE void LoadIn(const std::byte* unit, int in, Block* block) {
    Unpack(PartsOf<F>(unit, kUnit, in), block);
  }
  /// Everything of block b but its codes; the planes of these.
  TESSERA_KERNEL_INLINE CodePlanes LoadScales(const std::byte* group, int64_t blocks, int64_t b,
                                              Block* block) {
    const BlockParts parts = PartsOf<F>(group, blocks, b);
    Scales(parts, block);
    return {parts.codes, parts.high};
  }

  TESSERA_KERNEL_INLINE void Scales(const BlockParts& parts, Block* block) {
    block->d = LoadHalf8(parts.d);
    if constexpr (F::kHasMin) block->m = LoadHalf8(parts.m);
  }
  TESSERA_KERNEL_INLINE void Unpack(const BlockParts& parts, Block* block) {
    Scales(parts, block);
    if constexpr (F::kBits == 8) {
      TESSERA_UNROLL
      for (int t = 0; t < 8; ++t) block->codes[t] = LoadBytes(parts.codes + 32 * t);
    } else {
      UnpackNibbles(parts.codes, block);
    }
    if constexpr (F::kBits == 5) AddFifthBits(parts.high, block);
  }
};

/// Q4_K and Q5_K: scales and minima of sub-block i from the three words of each row (ScaleMin).
template <DType dtype>
struct SuperSource {
  using Codes = std::conditional_t<dtype == DType::kQ4_K, U4, U5>;
  static constexpr int64_t kBytes = SuperBytes(dtype) / 8;
  static constexpr bool kHasMin = true;
  static constexpr int kZero = 0;
  static constexpr int kUnit = 8;

  TESSERA_KERNEL_INLINE void Load(const std::byte* group, int64_t, int64_t b, Block* block) {
    LoadIn(group + b / 8 * SuperBytes(dtype), static_cast<int>(b % 8), block);
  }
  TESSERA_KERNEL_INLINE void LoadIn(const std::byte* unit, int i, Block* block) {
    const CodePlanes planes = Scales(unit, i, block);
    UnpackNibbles(planes.codes, block);
    if constexpr (dtype == DType::kQ5_K) AddFifthBits(planes.high, block);
  }
  TESSERA_KERNEL_INLINE CodePlanes LoadScales(const std::byte* group, int64_t, int64_t b,
                                              Block* block) {
    return Scales(group + b / 8 * SuperBytes(dtype), static_cast<int>(b % 8), block);
  }

  TESSERA_KERNEL_INLINE CodePlanes Scales(const std::byte* unit, int i, Block* block) {
    const SuperParts parts = SuperPartsOf<dtype>(unit, 0);
    const __m256i low = LoadBytes(parts.scales);
    const __m256i mid = LoadBytes(parts.scales + 32);
    const __m256i six = _mm256_set1_epi32(63);
    __m256i scale, min;
    if (i < 4) {
      scale = _mm256_and_si256(_mm256_srli_epi32(low, 8 * i), six);
      min = _mm256_and_si256(_mm256_srli_epi32(mid, 8 * i), six);
    } else {
      const __m256i high = LoadBytes(parts.scales + 64);
      const __m256i four = _mm256_set1_epi32(15), two = _mm256_set1_epi32(0x30);
      const int shift = 8 * (i - 4);
      scale = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi32(high, shift), four),
                              _mm256_and_si256(_mm256_srli_epi32(low, shift + 2), two));
      min = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi32(high, shift + 4), four),
                            _mm256_and_si256(_mm256_srli_epi32(mid, shift + 2), two));
    }
    block->d = _mm256_mul_ps(LoadHalf8(parts.d), _mm256_cvtepi32_ps(scale));
    block->m = Negate(_mm256_mul_ps(LoadHalf8(parts.dmin), _mm256_cvtepi32_ps(min)));
    return {parts.codes + i * 128, dtype == DType::kQ5_K ? parts.high + i * 32 : nullptr};
  }
};
template <>
struct Source<DType::kQ4_K> : SuperSource<DType::kQ4_K> {};
template <>
struct Source<DType::kQ5_K> : SuperSource<DType::kQ5_K> {};

template <>
struct Source<DType::kQ6_K> {
  using Codes = U6Halves;
  static constexpr int64_t kBytes = SuperBytes(DType::kQ6_K) / 8;
  static constexpr bool kHasMin = false;
  static constexpr int kZero = 32;
  static constexpr int kUnit = 8;

  TESSERA_KERNEL_INLINE void Load(const std::byte* group, int64_t, int64_t b, Block* block) {
    LoadIn(group + b / 8 * SuperBytes(DType::kQ6_K), static_cast<int>(b % 8), block);
  }
  TESSERA_KERNEL_INLINE CodePlanes LoadScales(const std::byte* group, int64_t, int64_t b,
                                              Block* block) {
    return Scales(group + b / 8 * SuperBytes(DType::kQ6_K), static_cast<int>(b % 8), block);
  }
  TESSERA_KERNEL_INLINE CodePlanes Scales(const std::byte* unit, int i, Block* block) {
    const SuperParts parts = SuperPartsOf<DType::kQ6_K>(unit, 0);
    block->d = LoadHalf8(parts.d);
    block->scales = _mm256_cvtepi8_epi16(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(parts.scales + i * 16)));
    return {parts.codes + i * 128, parts.high + i * 64};
  }
  TESSERA_KERNEL_INLINE void LoadIn(const std::byte* unit, int i, Block* block) {
    const CodePlanes planes = Scales(unit, i, block);
    UnpackNibbles(planes.codes, block);
    const __m256i mask = _mm256_set1_epi8(0x30);
    TESSERA_UNROLL
    for (int plane = 0; plane < 2; ++plane) {
      const __m256i bits = LoadBytes(planes.high + plane * 32);
      const __m256i two[4] = {_mm256_slli_epi16(bits, 4), _mm256_slli_epi16(bits, 2), bits,
                              _mm256_srli_epi16(bits, 2)};
      TESSERA_UNROLL
      for (int t = 0; t < 4; ++t) {
        __m256i& codes = block->codes[4 * plane + t];
        codes = _mm256_or_si256(codes, _mm256_and_si256(two[t], mask));
      }
    }
  }
};

}  // namespace
}  // namespace tessera::kernels
