// SPDX-License-Identifier: Apache-2.0
#include "kernels/x86/avx512.h"
#include "kernels/x86/logits.h"
#include "kernels/x86/vec_avx2.h"

namespace tessera::kernels::avx512 {
namespace {

struct Logits512 {
  /// As integers that order like the floats, so that NaN of either sign shows as well.
  TESSERA_KERNEL_INLINE __m512i Keys(const float* x) {
    const __m512i bits = _mm512_loadu_si512(x);
    const __m512i flip =
        _mm512_and_si512(_mm512_srai_epi32(bits, 31), _mm512_set1_epi32(0x7fffffff));
    return _mm512_xor_si512(bits, flip);
  }

  TESSERA_KERNEL_INLINE float Max(const float* x) {
    const __m512 low = _mm512_loadu_ps(x), high = _mm512_loadu_ps(x + 16);
    if (_mm512_cmp_ps_mask(low, high, _CMP_UNORD_Q) != 0)
      return std::numeric_limits<float>::quiet_NaN();
    const int32_t key = _mm512_reduce_max_epi32(_mm512_max_epi32(Keys(x), Keys(x + 16)));
    const int32_t bits = key ^ ((key >> 31) & 0x7fffffff);
    float max;
    std::memcpy(&max, &bits, sizeof(max));
    return max;
  }

  TESSERA_KERNEL_INLINE __m512d Exp(__m256 x, __m512d max, __m512d scale) {
    __m512d z = _mm512_mul_pd(_mm512_sub_pd(_mm512_cvtps_pd(x), max), scale);
    z = _mm512_max_pd(z, _mm512_set1_pd(softmax::kLowest));
    const __m512d n = _mm512_roundscale_pd(_mm512_mul_pd(z, _mm512_set1_pd(softmax::kLog2E)),
                                           _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512d r = _mm512_fmadd_pd(n, _mm512_set1_pd(-softmax::kLn2High), z);
    r = _mm512_fmadd_pd(n, _mm512_set1_pd(-softmax::kLn2Low), r);
    __m512d p = _mm512_set1_pd(softmax::kTaylor[0]);
    TESSERA_UNROLL
    for (int i = 1; i < 14; ++i) p = _mm512_fmadd_pd(p, r, _mm512_set1_pd(softmax::kTaylor[i]));
    const __m512i exponent = _mm512_slli_epi64(_mm512_cvtpd_epi64(n), 52);
    return _mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(p), exponent));
  }

  TESSERA_KERNEL_INLINE double Mass(const float* x, double max, double scale) {
    const __m512d m = _mm512_set1_pd(max), s = _mm512_set1_pd(scale);
    const __m512d low =
        _mm512_add_pd(Exp(_mm256_loadu_ps(x), m, s), Exp(_mm256_loadu_ps(x + 8), m, s));
    const __m512d high =
        _mm512_add_pd(Exp(_mm256_loadu_ps(x + 16), m, s), Exp(_mm256_loadu_ps(x + 24), m, s));
    const __m512d v = _mm512_add_pd(low, high);
    const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(v), _mm512_extractf64x4_pd(v, 1));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }
};

}  // namespace

void BlockMax(const float* x, int64_t count, float* out) {
  WalkBlockMax<Logits512>(x, count, out);
}

void SoftmaxMass(const SoftmaxMassArgs& args) {
  WalkSoftmaxMass<Logits512>(args);
}

}  // namespace tessera::kernels::avx512
