// SPDX-License-Identifier: Apache-2.0
//
// The matmul driver for quantised weights and many rows, 512 bits wide: two groups (16 weight rows)
// side by side in one vector. The arithmetic is that of matmul_quantised.h, so are the bits.
#pragma once

#include "kernels/pack.h"
#include "kernels/x86/blocks_avx2.h"

namespace tessera::kernels {
namespace {

/// A block of two groups: lanes 0..7 of the first, 8..15 of the second.
struct WideBlock {
  __m512i codes[8];  // unsigned: signed codes are offset by 128
  __m512 d;
  __m512 m;
  __m512i scales[2];  // Q6_K
};

template <class S>
struct WideTraits {
  static constexpr bool kSigned = std::is_same_v<typename S::Codes, S8>;
  static constexpr bool kHalves = std::is_same_v<typename S::Codes, U6Halves>;
  static constexpr int kZero = kSigned ? 128 : S::kZero;
};

TESSERA_KERNEL_INLINE __m512i Join(__m256i low, __m256i high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
TESSERA_KERNEL_INLINE __m512 Join(__m256 low, __m256 high) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

template <class S>
TESSERA_KERNEL_INLINE void LoadWide(const std::byte* first, const std::byte* second, int64_t blocks,
                                    int64_t b, WideBlock* w) {
  Block low, high;
  S::Load(first, blocks, b, &low);
  S::Load(second, blocks, b, &high);
  TESSERA_UNROLL
  for (int t = 0; t < 8; ++t) {
    w->codes[t] = Join(low.codes[t], high.codes[t]);
    if constexpr (WideTraits<S>::kSigned) {
      w->codes[t] = _mm512_xor_si512(w->codes[t], _mm512_set1_epi8(-128));
    }
  }
  w->d = Join(low.d, high.d);
  if constexpr (S::kHasMin) w->m = Join(low.m, high.m);
  if constexpr (WideTraits<S>::kHalves) {
    const __m512i pair = Join(low.scales, high.scales);
    w->scales[0] = _mm512_srai_epi32(_mm512_slli_epi32(pair, 16), 16);
    w->scales[1] = _mm512_srai_epi32(pair, 16);
  }
}

TESSERA_KERNEL_INLINE __m512i Broadcast4Wide(const int8_t* p) {
  int32_t v;
  std::memcpy(&v, p, 4);
  return _mm512_set1_epi32(v);
}

/// Dot products of codes [begin, end) with R rows, on top of s.
template <int R>
TESSERA_KERNEL_INLINE void DotWide(const WideBlock& w, const int8_t* a, int begin, int end,
                                   __m512i (&s)[R]) {
  TESSERA_UNROLL
  for (int t = begin; t < end; ++t) {
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) {
      s[r] = _mm512_dpbusd_epi32(s[r], w.codes[t], Broadcast4Wide(a + r * kBlock + 4 * t));
    }
  }
}

/// Exact dot products with zero point and (Q6_K) scales applied.
template <class S, int R>
TESSERA_KERNEL_INLINE void BlockDots(const WideBlock& w, const QuantisedRows& q, int64_t at,
                                     __m512i (&s)[R]) {
  const int8_t* a = q.codes + at * kBlock;
  if constexpr (WideTraits<S>::kHalves) {
    __m512i second[R];
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) {
      s[r] = _mm512_set1_epi32(-S::kZero * q.half_sums[2 * (at + r)]);
      second[r] = _mm512_set1_epi32(-S::kZero * q.half_sums[2 * (at + r) + 1]);
    }
    DotWide<R>(w, a, 0, 4, s);
    DotWide<R>(w, a, 4, 8, second);
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) {
      s[r] = _mm512_add_epi32(_mm512_mullo_epi32(s[r], w.scales[0]),
                              _mm512_mullo_epi32(second[r], w.scales[1]));
    }
  } else {
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) {
      s[r] = WideTraits<S>::kZero ? _mm512_set1_epi32(-WideTraits<S>::kZero * q.sums[at + r])
                                  : _mm512_setzero_si512();
    }
    DotWide<R>(w, a, 0, 8, s);
  }
}

/// acc[r] += block w * block of activation rows at .. at + R - 1.
template <class S, int R>
TESSERA_KERNEL_INLINE void AddWide(const WideBlock& w, const QuantisedRows& q, int64_t at,
                                   float* acc) {
  __m512i s[R];
  BlockDots<S, R>(w, q, at, s);
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) {
    const __m512 scale = _mm512_set1_ps(q.scales[at + r]);
    __m512 v = _mm512_fmadd_ps(_mm512_cvtepi32_ps(s[r]), _mm512_mul_ps(w.d, scale),
                               _mm512_load_ps(acc + r * 16));
    if constexpr (S::kHasMin) {
      v = _mm512_fmadd_ps(w.m, _mm512_set1_ps(q.scaled_sums[at + r]), v);
    }
    _mm512_store_ps(acc + r * 16, v);
  }
}

inline constexpr int64_t kWideTile = 64;  // rows: 4 KiB of accumulators
inline constexpr int kWideRows = 8;  // 8 chains cover vpdpbusd's latency; 8 + 8 of 32 registers

/// Rows [m0, m0 + rows) of groups `group` and group + 1, or of one group alone (pair = false).
template <class S>
TESSERA_KERNEL_INLINE void TileWide(const MatmulArgs& a, int64_t group_bytes, int64_t group,
                                    bool pair, int64_t m0, int64_t rows) {
  alignas(64) float acc[kWideTile * 16];
  const int64_t blocks = a.k / kBlock, segment = blocks / a.segments;
  const int64_t ahead = PrefetchDistance(group_bytes, 2);
  const std::byte* first = a.weights + group * group_bytes;
  const std::byte* second = pair ? first + group_bytes : first;
  const int64_t columns = pair ? Min(16, a.n - group * 8) : Min(8, a.n - group * 8);
  const auto mask = static_cast<__mmask16>((1u << columns) - 1);
  for (int64_t begin = 0; begin < blocks; begin += segment) {
    for (int64_t r = 0; r < rows; ++r) _mm512_store_ps(acc + r * 16, _mm512_setzero_ps());
    for (int64_t b = begin; b < begin + segment; ++b) {
      WideBlock w;
      LoadWide<S>(first, second, blocks, b, &w);
      PrefetchBlock<S::kBytes>(first, b, ahead);
      PrefetchBlock<S::kBytes>(second, b, ahead);
      const int64_t at = b * a.q.rows + m0;
      int64_t r = 0;
      for (; r + kWideRows <= rows; r += kWideRows) {
        AddWide<S, kWideRows>(w, a.q, at + r, acc + r * 16);
      }
      if (rows - r >= 4) {
        AddWide<S, 4>(w, a.q, at + r, acc + r * 16);
        r += 4;
      }
      if (rows - r >= 2) {
        AddWide<S, 2>(w, a.q, at + r, acc + r * 16);
        r += 2;
      }
      if (r < rows) AddWide<S, 1>(w, a.q, at + r, acc + r * 16);
    }
    for (int64_t r = 0; r < rows; ++r) {
      float* out = a.out + (m0 + r) * a.ld_out + group * kGroupRows;
      __m512 v = _mm512_load_ps(acc + r * 16);
      if (begin > 0) v = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, out), v);
      _mm512_mask_storeu_ps(out, mask, v);
    }
  }
}

template <class S>
TESSERA_KERNEL_INLINE void MatmulWide(const MatmulArgs& a, int64_t group_bytes) {
  for (int64_t m0 = 0; m0 < a.rows; m0 += kWideTile) {
    const int64_t rows = Min(kWideTile, a.rows - m0);
    for (int64_t g = a.group_begin; g < a.group_end; g += 2) {
      TileWide<S>(a, group_bytes, g, g + 2 <= a.group_end, m0, rows);
    }
  }
}

}  // namespace
}  // namespace tessera::kernels
