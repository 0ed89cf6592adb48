// SPDX-License-Identifier: Apache-2.0
//
// BF16 on AVX-512 without dot products of bfloat16: numbers widened by a shift or a mask.
#include "kernels/x86/avx512.h"
#include "kernels/x86/bf16_avx512.h"

namespace tessera::kernels::avx512 {
namespace {

struct Fma512 : V512 {
  static constexpr int kSteps = 2;
  static constexpr int64_t kFewRows = 13;  // One run; two read the weights twice.
  static constexpr int64_t kPanel = 128, kTileRows = 60, kTileVectors = 8;

  TESSERA_KERNEL_INLINE Float Step(Float w, Float x, Float sum) {
    return _mm512_fmadd_ps(w, x, sum);
  }
  TESSERA_KERNEL_INLINE void Pin(Float& sum) { __asm__ volatile("" : "+v"(sum)); }
  template <int step>
  TESSERA_KERNEL_INLINE Float Widen(Pairs pairs) {
    const __m512i odd = _mm512_set1_epi32(static_cast<int>(0xffff0000));
    return _mm512_castsi512_ps(step == 0 ? _mm512_and_si512(pairs, odd)
                                         : _mm512_slli_epi32(pairs, 16));
  }
  /// 32 values as floats, each pair turned round.
  TESSERA_KERNEL_INLINE void WidenBlock(const uint16_t* from, float* to) {
    TESSERA_UNROLL
    for (int i = 0; i < 2; ++i) {
      const __m512i wide = _mm512_slli_epi32(_mm512_cvtepu16_epi32(LoadBytes(from + 16 * i)), 16);
      const __m512i turned = _mm512_shuffle_epi32(wide, static_cast<_MM_PERM_ENUM>(0xb1));
      _mm512_store_ps(to + 16 * i, _mm512_castsi512_ps(turned));
    }
  }
};

}  // namespace

void MatmulBFloat16(const MatmulArgs& a) {
  const FlushSubnormals flush;
  RunBFloat16<Fma512>(a);
}

}  // namespace tessera::kernels::avx512
