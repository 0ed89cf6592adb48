// SPDX-License-Identifier: Apache-2.0
//
// The matmul driver for quantised weights and many rows, 512 bits wide: two groups (16 weight rows)
// side by side in one vector, and two such pairs at a time where the registers allow. The
// arithmetic is that of matmul_quantised.h, so are the bits.
#pragma once

#include "kernels/pack.h"
#include "kernels/x86/blocks_avx512.h"

namespace tessera::kernels {
namespace {

/// What fits into 32 registers beside the codes of P pairs (8 P): sums of R rows, which must be
/// eight chains to cover vpdpbusd's latency. Two pairs share each broadcast of activations, and
/// loads bind: Q4_0 4096x4096, 128 rows: 671 -> 756 GOP/s, 16 rows: 589 -> 733.
template <int P>
inline constexpr int kWideRows = 8 / P;
inline constexpr int64_t kWideTile = 64;  // rows: 4 KiB of accumulators a pair

TESSERA_KERNEL_INLINE __m512i Broadcast4Wide(const void* p) {
  int32_t v;
  std::memcpy(&v, p, 4);
  return _mm512_set1_epi32(v);
}

/// Dot products of codes [begin, end) with R rows, on top of s.
template <int R, int P>
TESSERA_KERNEL_INLINE void DotWide(const WideBlock (&w)[P], const int8_t* a, int begin, int end,
                                   __m512i (&s)[R][P]) {
  TESSERA_UNROLL
  for (int t = begin; t < end; ++t) {
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) {
      const __m512i x = Broadcast4Wide(a + r * kBlock + 4 * t);
      TESSERA_UNROLL
      for (int p = 0; p < P; ++p) {
        s[r][p] = _mm512_dpbusd_epi32(s[r][p], w[p].codes[t], x);
        Pin(s[r][p]);
      }
    }
  }
}

/// What the zero point of the codes adds to a row's dot product: -zero * sum.
template <class S>
TESSERA_KERNEL_INLINE __m512i ZeroPoint(const int32_t* sum) {
  constexpr int kZero = WideTraits<S>::kZero;
  if constexpr (kZero == 0) return _mm512_setzero_si512();
  constexpr int kShift = std::countr_zero(static_cast<unsigned>(kZero));
  static_assert(kZero == 0 || kZero == 1 << kShift);
  return _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(Broadcast4Wide(sum), kShift));
}

/// Exact dot products of codes whose halves have scales of their own (Q6_K). The zero point of both
/// is one vpmaddwd of their sums and scales.
template <int R, int P>
TESSERA_KERNEL_INLINE void HalvesDots(const WideBlock (&w)[P], const QuantisedRows& q, int64_t at,
                                      __m512i (&s)[R][P]) {
  TESSERA_UNROLL
  for (int half = 0; half < 2; ++half) {
    __m512i dot[R][P];
    TESSERA_UNROLL
    for (int i = 0; i < R * P; ++i) dot[i / P][i % P] = _mm512_setzero_si512();
    DotWide<R, P>(w, q.codes + at * kBlock, 4 * half, 4 * half + 4, dot);
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) {
      TESSERA_UNROLL
      for (int p = 0; p < P; ++p) {
        const __m512i scaled = _mm512_mullo_epi32(dot[r][p], w[p].scales[half]);
        s[r][p] = half == 0 ? scaled : _mm512_add_epi32(s[r][p], scaled);
      }
    }
  }
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) {
    const __m512i sums = Broadcast4Wide(q.half_sums + 2 * (at + r));
    TESSERA_UNROLL
    for (int p = 0; p < P; ++p) {
      s[r][p] = _mm512_sub_epi32(s[r][p], _mm512_madd_epi16(sums, w[p].zero));
    }
  }
}

/// Exact dot products with zero point and (Q6_K) scales applied.
template <class S, int R, int P>
TESSERA_KERNEL_INLINE void BlockDots(const WideBlock (&w)[P], const QuantisedRows& q, int64_t at,
                                     __m512i (&s)[R][P]) {
  if constexpr (WideTraits<S>::kHalves) return HalvesDots<R, P>(w, q, at, s);
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) {
    const __m512i zero = ZeroPoint<S>(q.sums + at + r);
    TESSERA_UNROLL
    for (int p = 0; p < P; ++p) s[r][p] = zero;
  }
  DotWide<R, P>(w, q.codes + at * kBlock, 0, 8, s);
}

/// acc[r][p] += block w[p] * block of activation rows at .. at + R - 1. Without `lanes` acc counts
/// as zero: that is how a sum begins.
template <class S, int R, int P>
TESSERA_KERNEL_INLINE void AddWide(const WideBlock (&w)[P], const QuantisedRows& q, int64_t at,
                                   __mmask16 lanes, float* acc) {
  __m512i s[R][P];
  BlockDots<S, R, P>(w, q, at, s);
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) {
    const __m512 scale = _mm512_set1_ps(q.scales[at + r]);
    TESSERA_UNROLL
    for (int p = 0; p < P; ++p) {
      float* to = acc + (r * P + p) * 16;
      __m512 v = _mm512_fmadd_ps(_mm512_cvtepi32_ps(s[r][p]), _mm512_mul_ps(w[p].d, scale),
                                 _mm512_maskz_load_ps(lanes, to));
      if constexpr (S::kHasMin) {
        v = _mm512_fmadd_ps(w[p].m, _mm512_set1_ps(q.scaled_sums[at + r]), v);
      }
      _mm512_store_ps(to, v);
    }
  }
}

/// All rows of the tile, in runs of kWideRows and what is left.
template <class S, int P>
TESSERA_KERNEL_INLINE void AddRows(const WideBlock (&w)[P], const QuantisedRows& q, int64_t at,
                                   int64_t rows, __mmask16 lanes, float* acc) {
  constexpr int kRows = kWideRows<P>;
  int64_t r = 0;
  for (; r + kRows <= rows; r += kRows) AddWide<S, kRows, P>(w, q, at + r, lanes, acc + r * P * 16);
  if constexpr (kRows > 4) {
    if (rows - r >= 4) {
      AddWide<S, 4, P>(w, q, at + r, lanes, acc + r * P * 16);
      r += 4;
    }
  }
  if (rows - r >= 2) {
    AddWide<S, 2, P>(w, q, at + r, lanes, acc + r * P * 16);
    r += 2;
  }
  if (r < rows) AddWide<S, 1, P>(w, q, at + r, lanes, acc + r * P * 16);
}

/// Adds (or, for the first segment, writes) a tile's accumulators to the output.
template <int P>
TESSERA_KERNEL_INLINE void StoreWide(const MatmulArgs& a, const float* acc, int64_t group,
                                     int64_t columns, int64_t m0, int64_t rows, bool first) {
  TESSERA_UNROLL
  for (int p = 0; p < P; ++p) {
    const int64_t here = Min(16, columns - 16 * p);
    const auto mask = static_cast<__mmask16>((1u << here) - 1);
    for (int64_t r = 0; r < rows; ++r) {
      float* out = a.out + (m0 + r) * a.ld_out + group * kGroupRows + 16 * p;
      __m512 v = _mm512_load_ps(acc + (r * P + p) * 16);
      if (!first) v = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, out), v);
      _mm512_mask_storeu_ps(out, mask, v);
    }
  }
}

/// Rows [m0, m0 + rows) of `groups` groups from `group` on: 2 P - 1 or 2 P of them.
template <class S, int P>
TESSERA_KERNEL_INLINE void TileWide(const MatmulArgs& a, int64_t group_bytes, int64_t group,
                                    int64_t groups, int64_t m0, int64_t rows) {
  alignas(64) float acc[kWideTile * P * 16];
  const int64_t blocks = a.k / kBlock, segment = blocks / a.segments;
  const int64_t ahead = PrefetchDistance(group_bytes, 2 * P);
  const std::byte* weights = a.weights + group * group_bytes;
  const int64_t columns = Min(8 * groups, a.n - group * 8);
  for (int64_t begin = 0; begin < blocks; begin += segment) {
    for (int64_t b = begin; b < begin + segment; ++b) {
      WideBlock w[P];
      TESSERA_UNROLL
      for (int p = 0; p < P; ++p) {
        const std::byte* first = weights + 2 * p * group_bytes;
        // An odd last group is its own neighbour; the copy's columns are not stored.
        const std::byte* second = 2 * p + 1 < groups ? first + group_bytes : first;
        LoadWide<S>(first, second, blocks, b, &w[p]);
        PrefetchBlock<S::kBytes>(first, b, ahead);
        PrefetchBlock<S::kBytes>(second, b, ahead);
      }
      const auto lanes = static_cast<__mmask16>(b == begin ? 0 : 0xffff);
      AddRows<S, P>(w, a.q, b * a.q.rows + m0, rows, lanes, acc);
    }
    StoreWide<P>(a, acc, group, columns, m0, rows, begin == 0);
  }
}

/// Few rows are bound by memory, and four streams are slower than two (Q4_0 4096x4096, 4 rows:
/// 0.71x) unless the groups are so short that they make one stream.
inline constexpr int64_t kFewRows = 4;
inline constexpr int64_t kShortGroups = 16384;

template <class S>
TESSERA_KERNEL_INLINE void MatmulWide(const MatmulArgs& a, int64_t group_bytes) {
  const bool two_pairs = a.rows > kFewRows || 4 * group_bytes <= kShortGroups;
  for (int64_t m0 = 0; m0 < a.rows; m0 += kWideTile) {
    const int64_t rows = Min(kWideTile, a.rows - m0);
    int64_t g = a.group_begin;
    for (; two_pairs && g + 3 <= a.group_end; g += 4) {
      TileWide<S, 2>(a, group_bytes, g, Min(4, a.group_end - g), m0, rows);
    }
    for (; g < a.group_end; g += 2) {
      TileWide<S, 1>(a, group_bytes, g, Min(2, a.group_end - g), m0, rows);
    }
  }
}

}  // namespace
}  // namespace tessera::kernels
