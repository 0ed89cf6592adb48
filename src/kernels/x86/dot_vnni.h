// SPDX-License-Identifier: Apache-2.0
//
// Exact int32 dot products by vpdpbusd (unsigned x signed bytes, four products per lane, no
// saturation), 256 bits wide, in whichever encoding the file is compiled for (AVX-512 VNNI with VL,
// or AVX-VNNI). Signed codes are offset by 128, which the zero point takes back.
#pragma once

#include "kernels/x86/blocks_avx2.h"

namespace tessera::kernels {
namespace {

TESSERA_KERNEL_INLINE __m256i Dpbusd(__m256i sum, __m256i codes, __m256i x) {
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
  return _mm256_dpbusd_epi32(sum, codes, x);
#else
  return _mm256_dpbusd_avx_epi32(sum, codes, x);
#endif
}

template <class Codes>
struct DotVnni {
  static constexpr bool kSigned = std::is_same_v<Codes, S8>;
  template <class S>
  static constexpr int kZero = kSigned ? 128 : S::kZero;

  template <int R, int G>
  TESSERA_KERNEL_INLINE Dots<R, G> Run(const Block (&w)[G], const int8_t* a, const int16_t*) {
    Dots<R, G> out;
    TESSERA_UNROLL
    for (int i = 0; i < R * G; ++i) out.s[i / G][i % G] = _mm256_setzero_si256();
    TESSERA_UNROLL
    for (int t = 0; t < 8; ++t) {
      TESSERA_UNROLL
      for (int g = 0; g < G; ++g) {
        __m256i codes = w[g].codes[t];
        if constexpr (kSigned) codes = _mm256_xor_si256(codes, _mm256_set1_epi8(-128));
        TESSERA_UNROLL
        for (int r = 0; r < R; ++r) {
          const __m256i x = Broadcast4(a + r * kBlock + 4 * t);
          out.s[r][g] = Dpbusd(out.s[r][g], codes, x);
        }
      }
    }
    return out;
  }
};

/// Two int8 scales per block (Q6_K), zero point 32.
template <>
struct DotVnni<U6Halves> {
  template <class S>
  static constexpr int kZero = 0;

  template <int R, int G>
  TESSERA_KERNEL_INLINE Dots<R, G> Run(const Block (&w)[G], const int8_t* a,
                                       const int16_t* half_sums) {
    __m256i scale[G][2];
    TESSERA_UNROLL
    for (int g = 0; g < G; ++g) {
      scale[g][0] = _mm256_srai_epi32(_mm256_slli_epi32(w[g].scales, 16), 16);
      scale[g][1] = _mm256_srai_epi32(w[g].scales, 16);
    }
    Dots<R, G> out;
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) {  // Outermost: a broadcast serves both groups and is done with.
      __m256i sum[G];
      TESSERA_UNROLL
      for (int half = 0; half < 2; ++half) {
        __m256i s[G];
        const __m256i zero = _mm256_set1_epi32(-32 * half_sums[2 * r + half]);
        TESSERA_UNROLL
        for (int g = 0; g < G; ++g) s[g] = zero;
        TESSERA_UNROLL
        for (int t = 4 * half; t < 4 * half + 4; ++t) {
          const __m256i x = Broadcast4(a + r * kBlock + 4 * t);
          TESSERA_UNROLL
          for (int g = 0; g < G; ++g) {
            s[g] = Dpbusd(s[g], w[g].codes[t], x);
            Pin(s[g]);
          }
        }
        TESSERA_UNROLL
        for (int g = 0; g < G; ++g) {
          const __m256i scaled = _mm256_mullo_epi32(s[g], scale[g][half]);
          sum[g] = half == 0 ? scaled : _mm256_add_epi32(sum[g], scaled);
        }
      }
      TESSERA_UNROLL
      for (int g = 0; g < G; ++g) out.s[r][g] = sum[g];
    }
    return out;
  }
};

}  // namespace
}  // namespace tessera::kernels
