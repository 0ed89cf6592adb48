// SPDX-License-Identifier: Apache-2.0
#include "kernels/x86/probe_mixes.h"
#include "kernels/x86/probe_x86.h"

namespace tessera::kernels::avx2 {
namespace {

struct V256 {
  using Float = __m256;
  using Bytes = __m256i;
  static constexpr int kWidth = 32;

  template <class T>
  TESSERA_KERNEL_INLINE void Opaque(T& v) {
    asm volatile("" : "+x"(v));
  }
  TESSERA_KERNEL_INLINE Float Set(float v) { return _mm256_set1_ps(v); }
  TESSERA_KERNEL_INLINE Float Fma(Float a, Float x, Float y) { return _mm256_fmadd_ps(a, x, y); }
  TESSERA_KERNEL_INLINE Bytes Zero() { return _mm256_setzero_si256(); }
  TESSERA_KERNEL_INLINE Bytes SetBytes(char v) { return _mm256_set1_epi8(v); }
  TESSERA_KERNEL_INLINE Bytes SetWords(short v) { return _mm256_set1_epi16(v); }
  TESSERA_KERNEL_INLINE Bytes Load(const std::byte* p) { return LoadBytes(p); }
  TESSERA_KERNEL_INLINE Bytes Maddubs(Bytes a, Bytes b) { return _mm256_maddubs_epi16(a, b); }
  TESSERA_KERNEL_INLINE Bytes Madd(Bytes a, Bytes b) { return _mm256_madd_epi16(a, b); }
  TESSERA_KERNEL_INLINE Bytes AddWords(Bytes a, Bytes b) { return _mm256_add_epi16(a, b); }
  TESSERA_KERNEL_INLINE Bytes AddLanes(Bytes a, Bytes b) { return _mm256_add_epi32(a, b); }
};

}  // namespace

uint64_t ProbeFma(int64_t iterations) {
  return RunFma<V256>(iterations);
}
uint64_t ProbeMaddubs(int64_t iterations) {
  return RunMaddubs<V256, 1>(iterations);
}
uint64_t ProbeMaddubsX2(int64_t iterations) {
  return RunMaddubs<V256, 2>(iterations);
}
uint64_t ProbeMaddubsX4(int64_t iterations) {
  return RunMaddubs<V256, 4>(iterations);
}
uint64_t ProbeRead(const std::byte* data, int64_t bytes) {
  return RunRead<V256>(data, bytes);
}

}  // namespace tessera::kernels::avx2
