// SPDX-License-Identifier: Apache-2.0
//
// Vector helpers of the AVX2 kernels. Files that include this are compiled with
// -mavx2 -mfma -mf16c -mbmi2; everything is forced inline or in an unnamed namespace, so that no
// symbol of such a file can stand in for one of a baseline file.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "kernels/layout.h"
#include "kernels/ref/scalar.h"

#if defined(__clang__)
#define TESSERA_UNROLL _Pragma("unroll")
#else
#define TESSERA_UNROLL _Pragma("GCC unroll 16")
#endif

namespace tessera::kernels {

TESSERA_KERNEL_INLINE int64_t Min(int64_t a, int64_t b) {
  return a < b ? a : b;
}
TESSERA_KERNEL_INLINE int64_t Max(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/// Holds a running sum in a register and its additions in the order written. Without it GCC
/// computes all products first, then sums them as a tree, and spills: 125 of 318 instructions of a
/// Q4_0 tile.
TESSERA_KERNEL_INLINE void Pin(__m256i& sum) {
  __asm__ volatile("" : "+x"(sum));
}

TESSERA_KERNEL_INLINE __m256i LoadBytes(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

/// Weights are read once and in order, and groups follow each other: this far ahead a line is
/// needed soon, if not by this group then by the next. 1 KiB to 8 KiB measured ever better (20 ->
/// 28 GB/s, Q4_1 4096x4096, one thread), hardware prefetch alone 23.
inline constexpr int64_t kPrefetchBytes = 8192;

/// How far ahead to fetch when `groups` groups are read side by side: where groups are short, that
/// is the same place of the groups that come next.
TESSERA_KERNEL_INLINE int64_t PrefetchDistance(int64_t group_bytes, int64_t groups) {
  const int64_t next = group_bytes * groups;
  return groups > 1 && next < 6 * kPrefetchBytes ? next : kPrefetchBytes;
}

/// Four bytes to every 32-bit lane.
TESSERA_KERNEL_INLINE __m256i Broadcast4(const void* p) {
  int32_t v;
  std::memcpy(&v, p, 4);
  return _mm256_set1_epi32(v);
}

/// Eight f16 numbers as float32.
TESSERA_KERNEL_INLINE __m256 LoadHalf8(const void* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}

TESSERA_KERNEL_INLINE __m128i ToHalf8(__m256 v) {
  return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/// ((v0+v4) + (v2+v6)) + ((v1+v5) + (v3+v7)).
TESSERA_KERNEL_INLINE float Sum8Avx2(__m256 v) {
  __m128 h = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  h = _mm_add_ps(h, _mm_movehl_ps(h, h));
  h = _mm_add_ss(h, _mm_movehdup_ps(h));
  return _mm_cvtss_f32(h);
}

TESSERA_KERNEL_INLINE float Max8Avx2(__m256 v) {
  __m128 h = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  h = _mm_max_ps(h, _mm_movehl_ps(h, h));
  h = _mm_max_ss(h, _mm_movehdup_ps(h));
  return _mm_cvtss_f32(h);
}

/// ref::Exp on eight lanes, bit for bit.
TESSERA_KERNEL_INLINE __m256 ExpAvx2(__m256 x) {
  x = _mm256_max_ps(_mm256_set1_ps(kExpLow), x);  // In this order NaN passes.
  x = _mm256_min_ps(_mm256_set1_ps(kExpHigh), x);
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(kLog2E)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2High), x);
  r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2Low), r);
  __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(kExpC6), r, _mm256_set1_ps(kExpC5));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpC4));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpC3));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpC2));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
  return _mm256_castsi256_ps(
      _mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23)));
}

TESSERA_KERNEL_INLINE __m256 Negate(__m256 x) {
  return _mm256_xor_ps(x, _mm256_set1_ps(-0.0f));
}

/// Lanes [0, count) all ones.
TESSERA_KERNEL_INLINE __m256i LaneMask(int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/// The first `count` floats (at most 8), the rest zero; and storing only those.
TESSERA_KERNEL_INLINE __m256 LoadPart(const float* p, int64_t count) {
  return count >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, LaneMask(count));
}
TESSERA_KERNEL_INLINE void StorePart(float* p, __m256 v, int64_t count) {
  if (count >= 8) {
    _mm256_storeu_ps(p, v);
  } else {
    _mm256_maskstore_ps(p, LaneMask(count), v);
  }
}

}  // namespace tessera::kernels
