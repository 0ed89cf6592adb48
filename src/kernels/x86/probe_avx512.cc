// SPDX-License-Identifier: Apache-2.0
#include "kernels/x86/probe_mixes.h"
#include "kernels/x86/probe_x86.h"

namespace tessera::kernels::avx512 {
namespace {

struct V512 {
  using Float = __m512;
  using Bytes = __m512i;
  static constexpr int kWidth = 64;

  template <class T>
  TESSERA_KERNEL_INLINE void Opaque(T& v) {
    asm volatile("" : "+v"(v));
  }
  TESSERA_KERNEL_INLINE Float Set(float v) { return _mm512_set1_ps(v); }
  TESSERA_KERNEL_INLINE Float Fma(Float a, Float x, Float y) { return _mm512_fmadd_ps(a, x, y); }
  TESSERA_KERNEL_INLINE Bytes Zero() { return _mm512_setzero_si512(); }
  TESSERA_KERNEL_INLINE Bytes SetBytes(char v) { return _mm512_set1_epi8(v); }
  TESSERA_KERNEL_INLINE Bytes SetWords(short v) { return _mm512_set1_epi16(v); }
  TESSERA_KERNEL_INLINE Bytes Load(const std::byte* p) { return _mm512_loadu_si512(p); }
  TESSERA_KERNEL_INLINE Bytes Maddubs(Bytes a, Bytes b) { return _mm512_maddubs_epi16(a, b); }
  TESSERA_KERNEL_INLINE Bytes Madd(Bytes a, Bytes b) { return _mm512_madd_epi16(a, b); }
  TESSERA_KERNEL_INLINE Bytes AddWords(Bytes a, Bytes b) { return _mm512_add_epi16(a, b); }
  TESSERA_KERNEL_INLINE Bytes AddLanes(Bytes a, Bytes b) { return _mm512_add_epi32(a, b); }
  TESSERA_KERNEL_INLINE Bytes Dpbusd(Bytes sum, Bytes codes, Bytes x) {
    return _mm512_dpbusd_epi32(sum, codes, x);
  }
};

}  // namespace

uint64_t ProbeFma(int64_t iterations) {
  return RunFma<V512>(iterations);
}
uint64_t ProbeMaddubs(int64_t iterations) {
  return RunMaddubs<V512, 1>(iterations);
}
uint64_t ProbeMaddubsX2(int64_t iterations) {
  return RunMaddubs<V512, 2>(iterations);
}
uint64_t ProbeMaddubsX4(int64_t iterations) {
  return RunMaddubs<V512, 4>(iterations);
}
uint64_t ProbeDpbusd(int64_t iterations) {
  return RunDpbusd<V512>(iterations);
}
uint64_t ProbeRead(const std::byte* data, int64_t bytes) {
  return RunRead<V512>(data, bytes);
}

}  // namespace tessera::kernels::avx512
