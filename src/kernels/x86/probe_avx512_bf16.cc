// SPDX-License-Identifier: Apache-2.0
#include "kernels/x86/probe_mixes.h"
#include "kernels/x86/probe_x86.h"

namespace tessera::kernels::avx512 {

// Two a cycle of latency six or more. (With more than the 16 chains that TESSERA_UNROLL unrolls the
// sums would be in memory.)
uint64_t ProbeDpbf16(int64_t iterations) {
  constexpr int kChains = 16;
  __m512 sum[kChains];
  TESSERA_UNROLL
  for (int i = 0; i < kChains; ++i) sum[i] = _mm512_setzero_ps();
  __m512i weights = _mm512_set1_epi32(0x40404040);  // 3.0 twice
  const __m512i x = _mm512_set1_epi32(0x40a040a0);  // 5.0 twice
  for (int64_t n = 0; n < iterations; ++n) {
    TESSERA_UNROLL
    for (int i = 0; i < kChains; ++i) {
      asm volatile("" : "+v"(weights));  // Before each use: equal sums would be computed once.
      sum[i] = _mm512_dpbf16_ps(sum[i], reinterpret_cast<__m512bh>(weights),
                                reinterpret_cast<__m512bh>(x));
    }
  }
  uint64_t words = 0;
  TESSERA_UNROLL
  for (int i = 0; i < kChains; ++i) {  // The first two lanes, whole numbers, as a word.
    float lanes[2];
    const __m512 first = sum[i];
    std::memcpy(lanes, &first, sizeof(lanes));
    words += static_cast<uint64_t>(lanes[0]) | static_cast<uint64_t>(lanes[1]) << 32;
  }
  return words;
}

}  // namespace tessera::kernels::avx512
