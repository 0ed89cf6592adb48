// SPDX-License-Identifier: Apache-2.0
//
// Row kernels in 512 bits. Quantising takes sixteen rows of a block at a time, so that what a block
// has one of (scale, sums) is a lane of a vector: one division, one conversion and one store for
// sixteen blocks. Fewer rows go to the AVX2 kernel.
#include "kernels/x86/avx2.h"
#include "kernels/x86/avx512.h"
#include "kernels/x86/vec_avx512.h"

namespace tessera::kernels::avx512 {
namespace {

constexpr int64_t kRows = 16;

/// Block rows x, x + ldx, ... of 32 floats to indices at .. at + 15 of `out`.
TESSERA_KERNEL_INLINE void QuantiseRows16(const float* x, int64_t ldx, const QuantisedRows& out,
                                          int64_t at) {
  __m512 v[kRows];
  TESSERA_UNROLL
  for (int64_t r = 0; r < kRows; ++r) {
    const float* row = x + r * ldx;
    v[r] = _mm512_max_ps(_mm512_abs_ps(_mm512_loadu_ps(row)),
                         _mm512_abs_ps(_mm512_loadu_ps(row + 16)));
  }
  const __m512 amax = ReduceEach16<MaxFloats>(v), most = _mm512_set1_ps(127.0f);
  const __mmask16 some = _mm512_cmp_ps_mask(amax, _mm512_set1_ps(kQuantiseMin), _CMP_GE_OQ);
  const __m512 scale = _mm512_maskz_div_ps(some, amax, most);
  alignas(64) float inverse[kRows];
  _mm512_store_ps(inverse, _mm512_maskz_div_ps(some, most, amax));
  __m512i sums[2];
  TESSERA_UNROLL
  for (int64_t half = 0; half < 2; ++half) {
    TESSERA_UNROLL
    for (int64_t r = 0; r < kRows; ++r) {
      const __m512 scaled =
          _mm512_mul_ps(_mm512_loadu_ps(x + r * ldx + 16 * half), _mm512_set1_ps(inverse[r]));
      // A NaN became the smallest int32.
      const __m512i codes = _mm512_max_epi32(_mm512_cvtps_epi32(scaled), _mm512_set1_epi32(-127));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out.codes + (at + r) * kBlock + 16 * half),
                       _mm512_cvtsepi32_epi8(codes));
      v[r] = _mm512_castsi512_ps(codes);
    }
    sums[half] = _mm512_castps_si512(ReduceEach16<AddInts>(v));
  }
  const __m512i sum = _mm512_add_epi32(sums[0], sums[1]);
  const __m512i halves = _mm512_or_si512(_mm512_and_si512(sums[0], _mm512_set1_epi32(0xffff)),
                                         _mm512_slli_epi32(sums[1], 16));
  _mm512_storeu_ps(out.scales + at, scale);
  _mm512_storeu_si512(out.sums + at, sum);
  _mm512_storeu_si512(out.half_sums + 2 * at, halves);
  _mm512_storeu_ps(out.scaled_sums + at, _mm512_mul_ps(scale, _mm512_cvtepi32_ps(sum)));
}

/// As the reference: k % 32 == 0, so each of the 32 partial sums takes one element a block.
TESSERA_KERNEL_INLINE float RmsFactor(const float* x, int64_t k, float eps) {
  __m512 low = _mm512_setzero_ps(), high = _mm512_setzero_ps();
  for (int64_t i = 0; i < k; i += 32) {
    const __m512 a = _mm512_loadu_ps(x + i), b = _mm512_loadu_ps(x + i + 16);
    low = _mm512_fmadd_ps(a, a, low);
    high = _mm512_fmadd_ps(b, b, high);
  }
  const auto fold = [](__m512 p) {
    return _mm256_add_ps(_mm512_castps512_ps256(p), _mm512_extractf32x8_ps(p, 1));
  };
  const float mean = Sum8Avx2(_mm256_add_ps(fold(low), fold(high))) / static_cast<float>(k) + eps;
  return 1.0f / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean)));
}

struct AddOp {
  TESSERA_KERNEL_INLINE __m512 Apply(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }
};
struct MulOp {
  TESSERA_KERNEL_INLINE __m512 Apply(__m512 a, __m512 b) { return _mm512_mul_ps(a, b); }
};

template <class Op>
TESSERA_KERNEL_INLINE void Binary(const BinaryArgs& a) {
  for (int64_t m = a.row_begin; m < a.row_end; ++m) {
    const float* x = a.a + m * a.lda;
    const float* y = a.b + m * a.ldb;
    float* out = a.out + m * a.ld_out;
    int64_t i = 0;
    for (; i + 16 <= a.columns; i += 16) {
      _mm512_storeu_ps(out + i, Op::Apply(_mm512_loadu_ps(x + i), _mm512_loadu_ps(y + i)));
    }
    if (i == a.columns) continue;
    const __mmask16 left = FirstLanes16(a.columns - i);
    _mm512_mask_storeu_ps(
        out + i, left,
        Op::Apply(_mm512_maskz_loadu_ps(left, x + i), _mm512_maskz_loadu_ps(left, y + i)));
  }
}

/// x / (1 + exp(-y)).
TESSERA_KERNEL_INLINE __m512 TimesSigmoid(__m512 x, __m512 y) {
  const __m512 minus = _mm512_xor_ps(y, _mm512_set1_ps(-0.0f));
  return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), ExpAvx512(minus)));
}

struct SiluOp {
  TESSERA_KERNEL_INLINE __m512 Apply(__m512 x) { return TimesSigmoid(x, x); }
};
struct GeluOp {
  TESSERA_KERNEL_INLINE __m512 Apply(__m512 x) {
    const __m512 inner =
        _mm512_fmadd_ps(_mm512_set1_ps(kGelu3), _mm512_mul_ps(x, x), _mm512_set1_ps(kGelu1));
    return TimesSigmoid(x, _mm512_mul_ps(x, inner));
  }
};

/// Sixteen or fewer gates and what multiplies them.
struct GateUp {
  __m512 gate;
  __m512 up;
};

/// Columns [i, i + count) of two groups: g0 u0 g1 u1, of eight each. An absent second group is the
/// first one again.
TESSERA_KERNEL_INLINE GateUp LoadInterleaved(const float* x, int64_t i, int64_t count) {
  const __m512 first = _mm512_loadu_ps(x + 2 * i);
  const __m512 second = count > 8 ? _mm512_loadu_ps(x + 2 * i + 16) : first;
  return {_mm512_shuffle_f32x4(first, second, 0x44), _mm512_shuffle_f32x4(first, second, 0xee)};
}

template <class Op, GateLayout layout>
TESSERA_KERNEL_INLINE void GateRows(const GatedArgs& a) {
  for (int64_t m = a.row_begin; m < a.row_end; ++m) {
    const float* x = a.x + m * a.ldx;
    float* out = a.out + m * a.ld_out;
    for (int64_t i = 0; i < a.columns; i += 16) {
      const __mmask16 lanes = FirstLanes16(a.columns - i);
      GateUp v = {};
      if constexpr (layout == GateLayout::kInterleaved) {
        v = LoadInterleaved(x, i, a.columns - i);
      } else {
        v.gate = _mm512_maskz_loadu_ps(lanes, x + i);
      }
      if constexpr (layout == GateLayout::kHalves) {
        v.up = _mm512_maskz_loadu_ps(lanes, x + a.columns + i);
      }
      v.gate = Op::Apply(v.gate);
      if constexpr (layout != GateLayout::kPlain) v.gate = _mm512_mul_ps(v.gate, v.up);
      _mm512_mask_storeu_ps(out + i, lanes, v.gate);
    }
  }
}

template <class Op>
TESSERA_KERNEL_INLINE void Gate(const GatedArgs& a) {
  switch (a.layout) {
    case GateLayout::kInterleaved:
      return GateRows<Op, GateLayout::kInterleaved>(a);
    case GateLayout::kHalves:
      return GateRows<Op, GateLayout::kHalves>(a);
    case GateLayout::kPlain:
      return GateRows<Op, GateLayout::kPlain>(a);
  }
}

}  // namespace

// Byte stores may alias the arguments: a copy keeps them in registers.
void Quantise(const QuantiseArgs& args) {
  QuantiseArgs a = args;
  for (; a.row_begin + kRows <= a.row_end; a.row_begin += kRows) {
    const float* x = a.x + a.row_begin * a.ldx;
    for (int64_t b = 0; b < a.k / kBlock; ++b) {
      QuantiseRows16(x + b * kBlock, a.ldx, a.out, b * a.out.rows + a.row_begin);
    }
  }
  if (a.row_begin < a.row_end) avx2::Quantise(a);
}

void RmsNormQuantise(const RmsNormArgs& args) {
  RmsNormArgs a = args;
  for (; a.row_begin + kRows <= a.row_end; a.row_begin += kRows) {
    const float* x = a.x + a.row_begin * a.ldx;
    float factor[kRows];
    for (int64_t r = 0; r < kRows; ++r) factor[r] = RmsFactor(x + r * a.ldx, a.k, a.eps);
    for (int64_t b = 0; b < a.k / kBlock; ++b) {
      alignas(64) float normalised[kRows * kBlock];
      for (int64_t half = 0; half < kBlock; half += 16) {
        const int64_t column = b * kBlock + half;
        const __m512 w = _mm512_loadu_ps(a.weight + column);
        TESSERA_UNROLL
        for (int64_t r = 0; r < kRows; ++r) {
          const __m512 v =
              _mm512_mul_ps(_mm512_loadu_ps(x + r * a.ldx + column), _mm512_set1_ps(factor[r]));
          _mm512_store_ps(normalised + r * kBlock + half, _mm512_mul_ps(v, w));
        }
      }
      QuantiseRows16(normalised, kBlock, a.q, b * a.q.rows + a.row_begin);
    }
  }
  if (a.row_begin < a.row_end) avx2::RmsNormQuantise(a);
}

void Add(const BinaryArgs& a) {
  Binary<AddOp>(a);
}
void Mul(const BinaryArgs& a) {
  Binary<MulOp>(a);
}
void SiluGate(const GatedArgs& a) {
  Gate<SiluOp>(a);
}
void GeluGate(const GatedArgs& a) {
  Gate<GeluOp>(a);
}

}  // namespace tessera::kernels::avx512
