// SPDX-License-Identifier: Apache-2.0
//
// Unpacking one block of 32 inputs x 16 rows (two groups) into 512-bit vectors: lane = row.
#pragma once

#include <bit>

#include "kernels/x86/blocks_avx2.h"

namespace tessera::kernels {
namespace {

/// A block of two groups: lanes 0..7 of the first, 8..15 of the second.
struct WideBlock {
  __m512i codes[8];  // unsigned: signed codes are offset by 128
  __m512 d;
  __m512 m;
  __m512i scales[2];  // Q6_K: of the two halves
  __m512i zero;       // Q6_K: 32 * both scales as int16 pairs, for the zero point
};

template <class S>
struct WideTraits {
  static constexpr bool kSigned = std::is_same_v<typename S::Codes, S8>;
  static constexpr bool kFifth = std::is_same_v<typename S::Codes, U5>;
  static constexpr bool kHalves = std::is_same_v<typename S::Codes, U6Halves>;
  static constexpr int kZero = kSigned ? 128 : S::kZero;
};

/// As Pin for 256 bits.
TESSERA_KERNEL_INLINE void Pin(__m512i& sum) {
  __asm__ volatile("" : "+v"(sum));
}

TESSERA_KERNEL_INLINE __m512i Join(__m256i low, __m256i high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
TESSERA_KERNEL_INLINE __m512 Join(__m256 low, __m256 high) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}
TESSERA_KERNEL_INLINE __m512i JoinBytes(const std::byte* low, const std::byte* high) {
  return Join(LoadBytes(low), LoadBytes(high));
}

/// code | (bits & mask), in one instruction.
TESSERA_KERNEL_INLINE __m512i OrMasked(__m512i code, __m512i bits, __m512i mask) {
  return _mm512_ternarylogic_epi32(code, bits, mask, 0xF8);
}

TESSERA_KERNEL_INLINE void WideNibbles(const std::byte* first, const std::byte* second,
                                       WideBlock* w) {
  const __m512i low = _mm512_set1_epi8(15);
  TESSERA_UNROLL
  for (int c = 0; c < 4; ++c) {
    const __m512i x = JoinBytes(first + 32 * c, second + 32 * c);
    w->codes[c] = _mm512_and_si512(x, low);
    w->codes[4 + c] = _mm512_and_si512(_mm512_srli_epi16(x, 4), low);
  }
}

/// As AddFifthBits.
TESSERA_KERNEL_INLINE void AddWideFifthBits(const std::byte* first, const std::byte* second,
                                            WideBlock* w) {
  const __m512i bits = JoinBytes(first, second), fifth = _mm512_set1_epi8(16);
  TESSERA_UNROLL
  for (unsigned t = 0; t < 8; ++t) {
    const __m512i at = t < 4 ? _mm512_slli_epi16(bits, 4 - t) : _mm512_srli_epi16(bits, t - 4);
    w->codes[t] = OrMasked(w->codes[t], at, fifth);
  }
}

/// The upper two bits of Q6_K's codes.
TESSERA_KERNEL_INLINE void AddWideTopBits(const std::byte* first, const std::byte* second,
                                          WideBlock* w) {
  const __m512i mask = _mm512_set1_epi8(0x30);
  TESSERA_UNROLL
  for (int plane = 0; plane < 2; ++plane) {
    const __m512i bits = JoinBytes(first + plane * 32, second + plane * 32);
    const __m512i two[4] = {_mm512_slli_epi16(bits, 4), _mm512_slli_epi16(bits, 2), bits,
                            _mm512_srli_epi16(bits, 2)};
    TESSERA_UNROLL
    for (int t = 0; t < 4; ++t) {
      w->codes[4 * plane + t] = OrMasked(w->codes[4 * plane + t], two[t], mask);
    }
  }
}

template <class S>
TESSERA_KERNEL_INLINE void LoadWide(const std::byte* first, const std::byte* second, int64_t blocks,
                                    int64_t b, WideBlock* w) {
  Block low, high;
  const CodePlanes a = S::LoadScales(first, blocks, b, &low);
  const CodePlanes c = S::LoadScales(second, blocks, b, &high);
  w->d = Join(low.d, high.d);
  if constexpr (S::kHasMin) w->m = Join(low.m, high.m);
  if constexpr (WideTraits<S>::kSigned) {
    TESSERA_UNROLL
    for (int t = 0; t < 8; ++t) {
      w->codes[t] =
          _mm512_xor_si512(JoinBytes(a.codes + 32 * t, c.codes + 32 * t), _mm512_set1_epi8(-128));
    }
    return;
  }
  WideNibbles(a.codes, c.codes, w);
  if constexpr (WideTraits<S>::kFifth) AddWideFifthBits(a.high, c.high, w);
  if constexpr (WideTraits<S>::kHalves) {
    AddWideTopBits(a.high, c.high, w);
    const __m512i pair = Join(low.scales, high.scales);
    w->scales[0] = _mm512_srai_epi32(_mm512_slli_epi32(pair, 16), 16);
    w->scales[1] = _mm512_srai_epi32(pair, 16);
    static_assert(S::kZero == 32);
    w->zero = _mm512_slli_epi16(pair, 5);
  }
}

}  // namespace
}  // namespace tessera::kernels
