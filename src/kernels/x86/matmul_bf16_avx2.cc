// SPDX-License-Identifier: Apache-2.0
//
// BF16 on AVX2: eight weight rows a vector, numbers widened by a shift or a mask.
#include "kernels/x86/avx2.h"
#include "kernels/x86/matmul_bf16.h"

namespace tessera::kernels::avx2 {
namespace {

struct V256 {
  using Float = __m256;
  using Pairs = __m256i;
  static constexpr int64_t kGroups = 1, kLanes = 8;
  static constexpr int kSteps = 2;
  static constexpr int kRows = 6, kVectors = 2;  // 12 sums of 16 registers
  static constexpr int kFewVectors = 4;
  static constexpr int64_t kFewRows = 7;  // One run; two read the weights twice.
  static constexpr int64_t kPanel = 256, kTileRows = 60, kTileVectors = 8;

  TESSERA_KERNEL_INLINE Float Zero() { return _mm256_setzero_ps(); }
  TESSERA_KERNEL_INLINE Float Load(const float* p) { return _mm256_load_ps(p); }
  TESSERA_KERNEL_INLINE void Store(float* p, Float v) { _mm256_store_ps(p, v); }
  TESSERA_KERNEL_INLINE Float LoadPart(const float* p, int64_t count) {
    return kernels::LoadPart(p, count);
  }
  TESSERA_KERNEL_INLINE void StorePart(float* p, Float v, int64_t count) {
    kernels::StorePart(p, v, count);
  }
  TESSERA_KERNEL_INLINE Float Add(Float a, Float b) { return _mm256_add_ps(a, b); }
  TESSERA_KERNEL_INLINE Float Step(Float w, Float x, Float sum) {
    return _mm256_fmadd_ps(w, x, sum);
  }
  TESSERA_KERNEL_INLINE void Pin(Float& sum) { __asm__ volatile("" : "+x"(sum)); }
  TESSERA_KERNEL_INLINE Float Broadcast(const std::byte* p) {
    return _mm256_castsi256_ps(Broadcast4(p));
  }
  TESSERA_KERNEL_INLINE Pairs BroadcastPair(const uint16_t* p) { return Broadcast4(p); }
  TESSERA_KERNEL_INLINE Pairs LoadPairs(const Lanes& lanes, int64_t at) {
    return LoadBytes(lanes.first + at);
  }
  template <int step>
  TESSERA_KERNEL_INLINE Float Widen(Pairs pairs) {
    const __m256i odd = _mm256_set1_epi32(static_cast<int>(0xffff0000));
    return _mm256_castsi256_ps(step == 0 ? _mm256_and_si256(pairs, odd)
                                         : _mm256_slli_epi32(pairs, 16));
  }
  /// 32 values as floats, each pair turned round.
  TESSERA_KERNEL_INLINE void WidenBlock(const uint16_t* from, float* to) {
    TESSERA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const __m256i wide =
          _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 8 * i)));
      const __m256i turned = _mm256_shuffle_epi32(_mm256_slli_epi32(wide, 16), 0xb1);
      _mm256_store_ps(to + 8 * i, _mm256_castsi256_ps(turned));
    }
  }
  TESSERA_KERNEL_INLINE void Prefetch(const Lanes& lanes, int64_t at) {
    _mm_prefetch(reinterpret_cast<const char*>(lanes.first + at), _MM_HINT_T0);
  }
};

}  // namespace

void MatmulBFloat16(const MatmulArgs& a) {
  const FlushSubnormals flush;
  RunBFloat16<V256>(a);
}

}  // namespace tessera::kernels::avx2
