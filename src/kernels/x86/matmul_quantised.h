// SPDX-License-Identifier: Apache-2.0
//
// The matmul driver for quantised weights, for 256-bit vectors: lane = weight row. Weights stream
// once per tile of kRowTile activation rows; a block is unpacked once and used for all rows of the
// tile, two groups at a time (one broadcast of activations serves both).
#pragma once

#include <bit>

#include "kernels/pack.h"
#include "kernels/x86/blocks_avx2.h"

namespace tessera::kernels {
namespace {

/// Accumulators of a tile (64 rows x 2 groups x 32 B = 4 KiB) and one block of its activations
/// (2 KiB) stay in L1 beside the unpacked block.
inline constexpr int64_t kRowTile = 64;
/// Up to so many rows one group at a time is read, as one linear stream: the memory decides (Q8_0
/// 4096x4096: 2 rows 72 -> 106 GOP/s, 8 rows 151 -> 191).
inline constexpr int64_t kLinearRows = 8;
/// Rows per register tile: 4 rows x 2 groups = 8 accumulators of the 16 registers. Eight rows of
/// one group measured 0.88x: more broadcasts for the same products.
inline constexpr int kRegisterRows = 4;

/// acc[r][g] += block of w * block b of activation rows m .. m + R - 1.
template <class S, template <class> class DotOf, int R, int G>
TESSERA_KERNEL_INLINE void AddBlock(const Block (&w)[G], const QuantisedRows& q, int64_t at,
                                    float* acc) {
  const Dots<R, G> dots =
      DotOf<typename S::Codes>::template Run<R, G>(w, q.codes + at * kBlock, q.half_sums + 2 * at);
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) {
    const __m256 scale = _mm256_broadcast_ss(q.scales + at + r);
    TESSERA_UNROLL
    for (int g = 0; g < G; ++g) {
      __m256i dot = dots.s[r][g];
      if constexpr (DotOf<typename S::Codes>::template kZero<S> != 0) {
        constexpr int kShift =
            std::countr_zero(static_cast<unsigned>(DotOf<typename S::Codes>::template kZero<S>));
        dot = _mm256_sub_epi32(dot, _mm256_slli_epi32(Broadcast4(q.sums + at + r), kShift));
      }
      float* to = acc + (r * G + g) * 8;
      __m256 v = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), _mm256_mul_ps(w[g].d, scale),
                                 _mm256_loadu_ps(to));
      if constexpr (S::kHasMin) {
        v = _mm256_fmadd_ps(w[g].m, _mm256_broadcast_ss(q.scaled_sums + at + r), v);
      }
      _mm256_storeu_ps(to, v);
    }
  }
}

/// Adds (or, for the first segment, writes) a tile's accumulators to the output.
template <int G>
TESSERA_KERNEL_INLINE void StoreTile(const MatmulArgs& a, const float* acc, int64_t group,
                                     int64_t m0, int64_t rows, bool first) {
  for (int64_t r = 0; r < rows; ++r) {
    TESSERA_UNROLL
    for (int g = 0; g < G; ++g) {
      float* out = a.out + (m0 + r) * a.ld_out + (group + g) * kGroupRows;
      const int64_t count = Min(kGroupRows, a.n - (group + g) * kGroupRows);
      __m256 v = _mm256_loadu_ps(acc + (r * G + g) * 8);
      if (!first) v = _mm256_add_ps(LoadPart(out, count), v);
      StorePart(out, v, count);
    }
  }
}

/// Rows [m0, m0 + rows) of G groups.
template <class S, template <class> class DotOf, int G>
TESSERA_KERNEL_INLINE void Tile(const MatmulArgs& a, int64_t group_bytes, int64_t group, int64_t m0,
                                int64_t rows) {
  alignas(64) float acc[kRowTile * G * 8];
  const int64_t blocks = a.k / kBlock;
  const int64_t segment = blocks / a.segments;
  const int64_t ahead = PrefetchDistance(group_bytes, G);
  const std::byte* weights = a.weights + group * group_bytes;
  for (int64_t begin = 0; begin < blocks; begin += segment) {
    for (int64_t i = 0; i < rows * G; ++i) _mm256_store_ps(acc + i * 8, _mm256_setzero_ps());
    for (int64_t b = begin; b < begin + segment; ++b) {
      Block w[G];
      TESSERA_UNROLL
      for (int g = 0; g < G; ++g) {
        S::Load(weights + g * group_bytes, blocks, b, &w[g]);
        PrefetchBlock<S::kBytes>(weights + g * group_bytes, b, ahead);
      }
      const int64_t at = b * a.q.rows + m0;
      int64_t r = 0;
      for (; r + kRegisterRows <= rows; r += kRegisterRows) {
        AddBlock<S, DotOf, kRegisterRows, G>(w, a.q, at + r, acc + r * G * 8);
      }
      for (; r + 2 <= rows; r += 2) AddBlock<S, DotOf, 2, G>(w, a.q, at + r, acc + r * G * 8);
      if (r < rows) AddBlock<S, DotOf, 1, G>(w, a.q, at + r, acc + r * G * 8);
    }
    StoreTile<G>(a, acc, group, m0, rows, begin == 0);
  }
}

/// One row: one group at a time, so that the share of a thread is one linear stream; two streams a
/// few KiB apart measured 0.3-0.8x of it.
template <class S, template <class> class DotOf>
TESSERA_KERNEL_INLINE void OneRow(const MatmulArgs& a, int64_t group_bytes, int64_t group,
                                  int64_t m) {
  const int64_t blocks = a.k / kBlock;
  const int64_t segment = blocks / a.segments;
  const std::byte* weights = a.weights + group * group_bytes;
  for (int64_t begin = 0; begin < blocks; begin += segment) {
    const int64_t end = begin + segment;
    alignas(64) float acc[8] = {};
    int64_t b = begin;
    const auto add = [&](const Block& w) __attribute__((always_inline)) {
      const Block one[1] = {w};
      AddBlock<S, DotOf, 1, 1>(one, a.q, b * a.q.rows + m, acc);
      ++b;
    };
    while (b < end) {
      Block w;
      if (b % S::kUnit == 0 && b + S::kUnit <= end) {
        const std::byte* unit = weights + b * S::kBytes;
        PrefetchBlock<S::kBytes * S::kUnit>(unit, 0, kPrefetchBytes);
        TESSERA_UNROLL
        for (int in = 0; in < S::kUnit; ++in) {
          S::LoadIn(unit, in, &w);
          add(w);
        }
      } else {
        S::Load(weights, blocks, b, &w);
        add(w);
      }
    }
    StoreTile<1>(a, acc, group, m, 1, begin == 0);
  }
}

template <class S, template <class> class DotOf>
TESSERA_KERNEL_INLINE void MatmulOne(const MatmulArgs& a, int64_t group_bytes) {
  for (int64_t m = 0; m < a.rows; ++m) {
    for (int64_t g = a.group_begin; g < a.group_end; ++g) OneRow<S, DotOf>(a, group_bytes, g, m);
  }
}

template <class S, template <class> class DotOf>
TESSERA_KERNEL_INLINE void MatmulMany(const MatmulArgs& a, int64_t group_bytes) {
  for (int64_t m0 = 0; m0 < a.rows; m0 += kRowTile) {
    const int64_t rows = Min(kRowTile, a.rows - m0);
    int64_t g = a.group_begin;
    if (rows > kLinearRows) {
      for (; g + 2 <= a.group_end; g += 2) Tile<S, DotOf, 2>(a, group_bytes, g, m0, rows);
    }
    for (; g < a.group_end; ++g) Tile<S, DotOf, 1>(a, group_bytes, g, m0, rows);
  }
}

}  // namespace
}  // namespace tessera::kernels
