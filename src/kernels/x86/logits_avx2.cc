// SPDX-License-Identifier: Apache-2.0
#include "kernels/x86/avx2.h"
#include "kernels/x86/logits.h"
#include "kernels/x86/vec_avx2.h"

namespace tessera::kernels::avx2 {
namespace {

struct Logits256 {
  TESSERA_KERNEL_INLINE __m256i Keys(__m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i flip =
        _mm256_and_si256(_mm256_srai_epi32(bits, 31), _mm256_set1_epi32(0x7fffffff));
    return _mm256_xor_si256(bits, flip);
  }

  TESSERA_KERNEL_INLINE float Max(const float* x) {
    const __m256 a = _mm256_loadu_ps(x), b = _mm256_loadu_ps(x + 8);
    const __m256 c = _mm256_loadu_ps(x + 16), d = _mm256_loadu_ps(x + 24);
    const __m256 nan =
        _mm256_or_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q), _mm256_cmp_ps(c, d, _CMP_UNORD_Q));
    if (_mm256_movemask_ps(nan) != 0) return std::numeric_limits<float>::quiet_NaN();
    // As integers that order like the floats: of two zeros +0 is greater.
    const __m256i eight =
        _mm256_max_epi32(_mm256_max_epi32(Keys(a), Keys(b)), _mm256_max_epi32(Keys(c), Keys(d)));
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1));
    const int32_t key = _mm_cvtsi128_si32(four);
    const int32_t bits = key ^ ((key >> 31) & 0x7fffffff);
    float max;
    std::memcpy(&max, &bits, sizeof(max));
    return max;
  }

  TESSERA_KERNEL_INLINE __m256d Exp(__m128 x, __m256d max, __m256d scale) {
    __m256d z = _mm256_mul_pd(_mm256_sub_pd(_mm256_cvtps_pd(x), max), scale);
    z = _mm256_max_pd(z, _mm256_set1_pd(softmax::kLowest));
    const __m256d n = _mm256_round_pd(_mm256_mul_pd(z, _mm256_set1_pd(softmax::kLog2E)),
                                      _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256d r = _mm256_fmadd_pd(n, _mm256_set1_pd(-softmax::kLn2High), z);
    r = _mm256_fmadd_pd(n, _mm256_set1_pd(-softmax::kLn2Low), r);
    __m256d p = _mm256_set1_pd(softmax::kTaylor[0]);
    TESSERA_UNROLL
    for (int i = 1; i < 14; ++i) p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(softmax::kTaylor[i]));
    const __m256i exponent = _mm256_slli_epi64(_mm256_cvtepi32_epi64(_mm256_cvtpd_epi32(n)), 52);
    return _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(p), exponent));
  }

  TESSERA_KERNEL_INLINE double Mass(const float* x, double max, double scale) {
    const __m256d m = _mm256_set1_pd(max), s = _mm256_set1_pd(scale);
    __m256d v[2];  // Places 0..3 and 4..7 of the eight.
    TESSERA_UNROLL
    for (int i = 0; i < 2; ++i) {
      const float* at = x + 4 * i;
      const __m256d low =
          _mm256_add_pd(Exp(_mm_loadu_ps(at), m, s), Exp(_mm_loadu_ps(at + 8), m, s));
      const __m256d high =
          _mm256_add_pd(Exp(_mm_loadu_ps(at + 16), m, s), Exp(_mm_loadu_ps(at + 24), m, s));
      v[i] = _mm256_add_pd(low, high);
    }
    const __m256d four = _mm256_add_pd(v[0], v[1]);
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }
};

}  // namespace

void BlockMax(const float* x, int64_t count, float* out) {
  WalkBlockMax<Logits256>(x, count, out);
}

void SoftmaxMass(const SoftmaxMassArgs& args) {
  WalkSoftmaxMass<Logits256>(args);
}

}  // namespace tessera::kernels::avx2
