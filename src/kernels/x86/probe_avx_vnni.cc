// SPDX-License-Identifier: Apache-2.0
#include "kernels/x86/probe_mixes.h"
#include "kernels/x86/probe_x86.h"

namespace tessera::kernels::avx_vnni {
namespace {

struct V256 {
  using Bytes = __m256i;

  TESSERA_KERNEL_INLINE void Opaque(Bytes& v) { asm volatile("" : "+x"(v)); }
  TESSERA_KERNEL_INLINE Bytes Zero() { return _mm256_setzero_si256(); }
  TESSERA_KERNEL_INLINE Bytes SetBytes(char v) { return _mm256_set1_epi8(v); }
  TESSERA_KERNEL_INLINE Bytes Dpbusd(Bytes sum, Bytes codes, Bytes x) {
    return _mm256_dpbusd_avx_epi32(sum, codes, x);
  }
};

}  // namespace

uint64_t ProbeDpbusd(int64_t iterations) {
  return RunDpbusd<V256>(iterations);
}

}  // namespace tessera::kernels::avx_vnni
