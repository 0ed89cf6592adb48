// SPDX-License-Identifier: Apache-2.0
//
// Vector helpers of the AVX-512 kernels (F, BW, DQ, VL), as vec_avx2.h has them for 256 bits.
#pragma once

#include "kernels/x86/vec_avx2.h"

namespace tessera::kernels {

/// ref::Exp on sixteen lanes, bit for bit.
TESSERA_KERNEL_INLINE __m512 ExpAvx512(__m512 x) {
  x = _mm512_max_ps(_mm512_set1_ps(kExpLow), x);  // In this order NaN passes.
  x = _mm512_min_ps(_mm512_set1_ps(kExpHigh), x);
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(kLog2E)),
                                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-kLn2High), x);
  r = _mm512_fmadd_ps(n, _mm512_set1_ps(-kLn2Low), r);
  __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(kExpC6), r, _mm512_set1_ps(kExpC5));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpC4));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpC3));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpC2));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  return _mm512_castsi512_ps(
      _mm512_add_epi32(_mm512_castps_si512(p), _mm512_slli_epi32(_mm512_cvtps_epi32(n), 23)));
}

/// The same in the given lanes, zero elsewhere, for x <= 0 or NaN: two instructions less.
TESSERA_KERNEL_INLINE __m512 ExpOfNegative(__mmask16 lanes, __m512 x) {
  x = _mm512_max_ps(_mm512_set1_ps(kExpLow), x);
  // Adding 1.5 * 2^23 rounds to an integer, to even like the reference, and leaves it in the low
  // bits.
  const __m512 magic = _mm512_set1_ps(0x1.8p23f);
  const __m512 shifted = _mm512_add_ps(_mm512_mul_ps(x, _mm512_set1_ps(kLog2E)), magic);
  const __m512 n = _mm512_sub_ps(shifted, magic);
  __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-kLn2High), x);
  r = _mm512_fmadd_ps(n, _mm512_set1_ps(-kLn2Low), r);
  __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(kExpC6), r, _mm512_set1_ps(kExpC5));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpC4));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpC3));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpC2));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  return _mm512_castsi512_ps(_mm512_maskz_add_epi32(
      lanes, _mm512_castps_si512(p), _mm512_slli_epi32(_mm512_castps_si512(shifted), 23)));
}

/// The first `count` lanes (at most all).
TESSERA_KERNEL_INLINE __mmask16 FirstLanes16(int64_t count) {
  return static_cast<__mmask16>((1u << Min(16, count)) - 1);
}

struct MaxFloats {
  TESSERA_KERNEL_INLINE __m512 Apply(__m512 a, __m512 b) { return _mm512_max_ps(a, b); }
};
/// int32 in the lanes.
struct AddInts {
  TESSERA_KERNEL_INLINE __m512 Apply(__m512 a, __m512 b) {
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
  }
};

/// Op over all lanes of each of sixteen vectors: lane i is that of v[i]. Op's order is not defined.
/// Three instructions a vector, where one vector alone takes eight. Destroys v.
template <class Op>
TESSERA_KERNEL_INLINE __m512 ReduceEach16(__m512 (&v)[16]) {
  TESSERA_UNROLL
  for (int i = 0; i < 8; ++i) {
    const __m512 a = v[2 * i], b = v[2 * i + 1];
    v[i] = Op::Apply(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
  }
  TESSERA_UNROLL
  for (int i = 0; i < 4; ++i) {
    const __m512d a = _mm512_castps_pd(v[2 * i]), b = _mm512_castps_pd(v[2 * i + 1]);
    v[i] = Op::Apply(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)),
                     _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
  }
  TESSERA_UNROLL
  for (int n = 2; n > 0; n /= 2) {
    TESSERA_UNROLL
    for (int i = 0; i < n; ++i) {
      const __m512 a = v[2 * i], b = v[2 * i + 1];
      v[i] = Op::Apply(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
    }
  }
  return v[0];
}

}  // namespace tessera::kernels
