// SPDX-License-Identifier: Apache-2.0
//
// Exact int32 dot products of one block of weights (8 rows) with R activation rows, for G groups at
// once, by vpmaddubsw. Pair sums are added in int16 as far as they cannot overflow
// (15*127*2*8 = 30480, 31*127*2*4 = 31496, 63*127*2*2 = 32004, 128*127*2 = 32512 <= 32767).
#pragma once

#include "kernels/x86/blocks_avx2.h"

namespace tessera::kernels {
namespace {

/// Unsigned codes of 4 or 5 bits.
template <class Codes>
struct Dot {
  /// What is left to subtract, times the sum of the activations.
  template <class S>
  static constexpr int kZero = S::kZero;

  template <int R, int G>
  TESSERA_KERNEL_INLINE Dots<R, G> Run(const Block (&w)[G], const int8_t* a, const int16_t*) {
    const __m256i one = _mm256_set1_epi16(1);
    constexpr int kRun = Codes::kMaxSums;
    Dots<R, G> out;
    TESSERA_UNROLL
    for (int first = 0; first < 8; first += kRun) {
      __m256i s[R][G];
      TESSERA_UNROLL
      for (int t = first; t < first + kRun; ++t) {
        TESSERA_UNROLL
        for (int r = 0; r < R; ++r) {
          const __m256i x = Broadcast4(a + r * kBlock + 4 * t);
          TESSERA_UNROLL
          for (int g = 0; g < G; ++g) {
            const __m256i p = _mm256_maddubs_epi16(w[g].codes[t], x);
            s[r][g] = t == first ? p : _mm256_add_epi16(s[r][g], p);
            Pin(s[r][g]);
          }
        }
      }
      TESSERA_UNROLL
      for (int r = 0; r < R; ++r) {
        TESSERA_UNROLL
        for (int g = 0; g < G; ++g) {
          const __m256i d = _mm256_madd_epi16(s[r][g], one);
          out.s[r][g] = first == 0 ? d : _mm256_add_epi32(out.s[r][g], d);
        }
      }
    }
    return out;
  }
};

/// Signed codes: |w| * (a with the sign of w). Right for -128 too, as |a| <= 127.
template <>
struct Dot<S8> {
  template <class S>
  static constexpr int kZero = 0;

  template <int R, int G>
  TESSERA_KERNEL_INLINE Dots<R, G> Run(const Block (&w)[G], const int8_t* a, const int16_t*) {
    const __m256i one = _mm256_set1_epi16(1);
    Dots<R, G> out;
    TESSERA_UNROLL
    for (int t = 0; t < 8; ++t) {
      TESSERA_UNROLL
      for (int g = 0; g < G; ++g) {
        const __m256i code = w[g].codes[t];
        const __m256i magnitude = _mm256_abs_epi8(code);
        TESSERA_UNROLL
        for (int r = 0; r < R; ++r) {
          const __m256i x = Broadcast4(a + r * kBlock + 4 * t);
          const __m256i p = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(x, code));
          const __m256i d = _mm256_madd_epi16(p, one);
          out.s[r][g] = t == 0 ? d : _mm256_add_epi32(out.s[r][g], d);
          Pin(out.s[r][g]);
        }
      }
    }
    return out;
  }
};

/// 6-bit codes with an int8 scale per half block and zero point 32, which the sums of the halves
/// take away here.
template <>
struct Dot<U6Halves> {
  template <class S>
  static constexpr int kZero = 0;

  template <int R, int G>
  TESSERA_KERNEL_INLINE Dots<R, G> Run(const Block (&w)[G], const int8_t* a,
                                       const int16_t* half_sums) {
    __m256i scale[G][2];
    TESSERA_UNROLL
    for (int g = 0; g < G; ++g) {
      const __m256i pair = w[g].scales;
      scale[g][0] = _mm256_or_si256(_mm256_slli_epi32(pair, 16),
                                    _mm256_and_si256(pair, _mm256_set1_epi32(0xffff)));
      scale[g][1] = _mm256_or_si256(_mm256_srli_epi32(pair, 16),
                                    _mm256_and_si256(pair, _mm256_set1_epi32(-65536)));
    }
    Dots<R, G> out;
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) {  // Outermost: a broadcast serves both groups and is done with.
      __m256i sum[G];
      const __m256i halves = Broadcast4(half_sums + 2 * r);
      TESSERA_UNROLL
      for (int g = 0; g < G; ++g) {
        const __m256i zero = _mm256_slli_epi32(_mm256_madd_epi16(w[g].scales, halves), 5);
        sum[g] = _mm256_sub_epi32(_mm256_setzero_si256(), zero);
        if constexpr (R > 1) Pin(sum[g]);
      }
      TESSERA_UNROLL
      for (int t = 0; t < 8; t += 2) {
        const int8_t* x = a + r * kBlock + 4 * t;
        const __m256i even = Broadcast4(x), odd = Broadcast4(x + 4);
        TESSERA_UNROLL
        for (int g = 0; g < G; ++g) {
          const __m256i p = _mm256_add_epi16(_mm256_maddubs_epi16(w[g].codes[t], even),
                                             _mm256_maddubs_epi16(w[g].codes[t + 1], odd));
          sum[g] = _mm256_add_epi32(sum[g], _mm256_madd_epi16(p, scale[g][t / 4]));
          if constexpr (R > 1) Pin(sum[g]);
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
