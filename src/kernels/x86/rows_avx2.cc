// SPDX-License-Identifier: Apache-2.0
#include "kernels/x86/avx2.h"
#include "kernels/x86/vec_avx2.h"

namespace tessera::kernels::avx2 {
namespace {

/// Four vectors of a block of 32.
struct Vec32 {
  __m256 v[4];
};

TESSERA_KERNEL_INLINE Vec32 Load32(const float* x) {
  return {{_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8), _mm256_loadu_ps(x + 16),
           _mm256_loadu_ps(x + 24)}};
}

/// (x * r) * w on a block.
TESSERA_KERNEL_INLINE Vec32 Normalise(Vec32 x, __m256 r, const float* w) {
  TESSERA_UNROLL
  for (int i = 0; i < 4; ++i) {
    x.v[i] = _mm256_mul_ps(_mm256_mul_ps(x.v[i], r), _mm256_loadu_ps(w + 8 * i));
  }
  return x;
}

TESSERA_KERNEL_INLINE float Amax(const Vec32& x) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  const __m256 low = _mm256_max_ps(_mm256_andnot_ps(sign, x.v[0]), _mm256_andnot_ps(sign, x.v[1]));
  const __m256 high = _mm256_max_ps(_mm256_andnot_ps(sign, x.v[2]), _mm256_andnot_ps(sign, x.v[3]));
  return Max8Avx2(_mm256_max_ps(low, high));
}

/// Sum of the 16 bytes of each half of 32 codes.
TESSERA_KERNEL_INLINE void HalfSums(__m256i codes, int16_t* halves) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), codes);
  const __m256i quads = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  __m256i sums = _mm256_add_epi32(quads, _mm256_shuffle_epi32(quads, 0x4e));
  sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0xb1));
  halves[0] = static_cast<int16_t>(_mm256_extract_epi32(sums, 0));
  halves[1] = static_cast<int16_t>(_mm256_extract_epi32(sums, 4));
}

TESSERA_KERNEL_INLINE void QuantiseBlock(const Vec32& x, const QuantisedRows& out, int64_t at) {
  const float amax = Amax(x);
  const bool zero = !(amax >= kQuantiseMin);
  const __m256 inverse = _mm256_set1_ps(zero ? 0.0f : 127.0f / amax);
  __m256i codes[4];
  TESSERA_UNROLL
  for (int i = 0; i < 4; ++i) codes[i] = _mm256_cvtps_epi32(_mm256_mul_ps(x.v[i], inverse));
  __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(codes[0], codes[1]),
                                     _mm256_packs_epi32(codes[2], codes[3]));
  bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  bytes = _mm256_max_epi8(bytes, _mm256_set1_epi8(-127));  // A NaN became -128.
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.codes + at * kBlock), bytes);
  int16_t* halves = out.half_sums + 2 * at;
  HalfSums(bytes, halves);
  const int32_t sum = halves[0] + halves[1];
  const float scale = zero ? 0.0f : amax / 127.0f;
  out.scales[at] = scale;
  out.sums[at] = sum;
  out.scaled_sums[at] = scale * static_cast<float>(sum);
}

/// Eight bfloat16 numbers in the low halves of the lanes.
TESSERA_KERNEL_INLINE __m256i RoundLanes(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
  const __m256i rounded = _mm256_add_epi32(bits, bias);
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(nan)), 16);
}

/// One block of 32 to `out`.
TESSERA_KERNEL_INLINE void RoundBlock(const Vec32& x, uint16_t* out) {
  TESSERA_UNROLL
  for (int i = 0; i < 2; ++i) {
    const __m256i words = _mm256_packus_epi32(RoundLanes(x.v[2 * i]), RoundLanes(x.v[2 * i + 1]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 16 * i),
                        _mm256_permute4x64_epi64(words, 0xd8));
  }
}

/// The first `count` floats at x, the rest zero.
TESSERA_KERNEL_INLINE Vec32 LoadPart32(const float* x, int64_t count) {
  Vec32 v;
  TESSERA_UNROLL
  for (int i = 0; i < 4; ++i) v.v[i] = LoadPart(x + 8 * i, Max(0, count - 8 * i));
  return v;
}

TESSERA_KERNEL_INLINE float RmsFactor(const float* x, int64_t k, float eps) {
  __m256 p[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                 _mm256_setzero_ps()};
  int64_t i = 0;
  for (; i + 32 <= k; i += 32) {
    const Vec32 v = Load32(x + i);
    TESSERA_UNROLL
    for (int j = 0; j < 4; ++j) p[j] = _mm256_fmadd_ps(v.v[j], v.v[j], p[j]);
  }
  TESSERA_UNROLL
  for (int j = 0; j < 4; ++j) {  // Absent elements add +0, which changes nothing.
    const int64_t left = Max(0, Min(8, k - i - 8 * j));
    if (left > 0) {
      const __m256 v = LoadPart(x + i + 8 * j, left);
      p[j] = _mm256_fmadd_ps(v, v, p[j]);
    }
  }
  const __m256 v = _mm256_add_ps(_mm256_add_ps(p[0], p[1]), _mm256_add_ps(p[2], p[3]));
  const float mean = Sum8Avx2(v) / static_cast<float>(k) + eps;
  return 1.0f / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean)));
}

struct AddOp {
  static __m256 Apply(__m256 a, __m256 b) { return _mm256_add_ps(a, b); }
};
struct MulOp {
  static __m256 Apply(__m256 a, __m256 b) { return _mm256_mul_ps(a, b); }
};

template <class Op>
TESSERA_KERNEL_INLINE void Binary(const BinaryArgs& a) {
  for (int64_t m = a.row_begin; m < a.row_end; ++m) {
    const float* x = a.a + m * a.lda;
    const float* y = a.b + m * a.ldb;
    float* out = a.out + m * a.ld_out;
    int64_t i = 0;
    for (; i + 8 <= a.columns; i += 8) {
      _mm256_storeu_ps(out + i, Op::Apply(_mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i)));
    }
    if (i < a.columns) {
      const int64_t left = a.columns - i;
      StorePart(out + i, Op::Apply(LoadPart(x + i, left), LoadPart(y + i, left)), left);
    }
  }
}

/// x / (1 + exp(-y)).
TESSERA_KERNEL_INLINE __m256 TimesSigmoid(__m256 x, __m256 y) {
  return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0f), ExpAvx2(Negate(y))));
}

struct SiluOp {
  static __m256 Apply(__m256 x) { return TimesSigmoid(x, x); }
};
struct GeluOp {
  static __m256 Apply(__m256 x) {
    const __m256 inner =
        _mm256_fmadd_ps(_mm256_set1_ps(kGelu3), _mm256_mul_ps(x, x), _mm256_set1_ps(kGelu1));
    return TimesSigmoid(x, _mm256_mul_ps(x, inner));
  }
};

template <class Op>
TESSERA_KERNEL_INLINE void Gate(const GatedArgs& a) {
  for (int64_t m = a.row_begin; m < a.row_end; ++m) {
    const float* x = a.x + m * a.ldx;
    float* out = a.out + m * a.ld_out;
    for (int64_t i = 0; i < a.columns; i += 8) {
      const int64_t count = Min(8, a.columns - i);
      const bool interleaved = a.layout == GateLayout::kInterleaved;
      const float* gate = interleaved ? x + 2 * i : x + i;
      __m256 v = Op::Apply(LoadPart(gate, count));
      if (a.layout != GateLayout::kPlain) {
        v = _mm256_mul_ps(v, LoadPart(interleaved ? gate + 8 : gate + a.columns, count));
      }
      StorePart(out + i, v, count);
    }
  }
}

/// Rotates pairs [i, i + 8) of one head.
TESSERA_KERNEL_INLINE void Rotate8(float* x, int64_t half, const float* table) {
  const __m256 low = _mm256_loadu_ps(table), high = _mm256_loadu_ps(table + 8);
  const auto order = [](__m256 v) {
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8));
  };
  const __m256 c = order(_mm256_shuffle_ps(low, high, 0x88));
  const __m256 s = order(_mm256_shuffle_ps(low, high, 0xdd));
  const __m256 a = _mm256_loadu_ps(x), b = _mm256_loadu_ps(x + half);
  _mm256_storeu_ps(x, _mm256_fmadd_ps(a, c, Negate(_mm256_mul_ps(b, s))));
  _mm256_storeu_ps(x + half, _mm256_fmadd_ps(b, c, _mm256_mul_ps(a, s)));
}

TESSERA_KERNEL_INLINE void RotateOne(float* x, int64_t half, const float* table) {
  const float c = table[0], s = table[1], a = x[0], b = x[half];
  x[0] = __builtin_fmaf(a, c, -(b * s));
  x[half] = __builtin_fmaf(b, c, a * s);
}

}  // namespace

// Byte stores may alias the arguments: a copy keeps them in registers.
void Quantise(const QuantiseArgs& args) {
  const QuantiseArgs a = args;
  for (int64_t m = a.row_begin; m < a.row_end; ++m) {
    for (int64_t b = 0; b < a.k / kBlock; ++b) {
      QuantiseBlock(Load32(a.x + m * a.ldx + b * kBlock), a.out, b * a.out.rows + m);
    }
  }
}

void Round(const RoundArgs& args) {
  const RoundArgs a = args;
  for (int64_t m = a.row_begin; m < a.row_end; ++m) {
    const float* x = a.x + m * a.ldx;
    for (int64_t b = 0; b * kBlock < a.k; ++b) {
      const int64_t count = Min(kBlock, a.k - b * kBlock);
      RoundBlock(LoadPart32(x + b * kBlock, count), a.out.values + (b * a.out.rows + m) * kBlock);
    }
  }
}

void RmsNorm(const RmsNormArgs& a) {
  for (int64_t m = a.row_begin; m < a.row_end; ++m) {
    const float* x = a.x + m * a.ldx;
    float* out = a.out + m * a.ld_out;
    const __m256 r = _mm256_set1_ps(RmsFactor(x, a.k, a.eps));
    for (int64_t i = 0; i < a.k; i += 8) {
      const int64_t count = Min(8, a.k - i);
      const __m256 v = _mm256_mul_ps(LoadPart(x + i, count), r);
      StorePart(out + i, _mm256_mul_ps(v, LoadPart(a.weight + i, count)), count);
    }
  }
}

void RmsNormQuantise(const RmsNormArgs& args) {
  const RmsNormArgs a = args;
  for (int64_t m = a.row_begin; m < a.row_end; ++m) {
    const float* x = a.x + m * a.ldx;
    const __m256 r = _mm256_set1_ps(RmsFactor(x, a.k, a.eps));
    for (int64_t b = 0; b < a.k / kBlock; ++b) {
      const Vec32 v = Normalise(Load32(x + b * kBlock), r, a.weight + b * kBlock);
      QuantiseBlock(v, a.q, b * a.q.rows + m);
    }
  }
}

void RmsNormRound(const RmsNormArgs& args) {
  const RmsNormArgs a = args;
  for (int64_t m = a.row_begin; m < a.row_end; ++m) {
    const float* x = a.x + m * a.ldx;
    const __m256 r = _mm256_set1_ps(RmsFactor(x, a.k, a.eps));
    for (int64_t b = 0; b * kBlock < a.k; ++b) {
      const int64_t count = Min(kBlock, a.k - b * kBlock);
      Vec32 v = LoadPart32(x + b * kBlock, count);
      const Vec32 w = LoadPart32(a.weight + b * kBlock, count);
      TESSERA_UNROLL
      for (int i = 0; i < 4; ++i) {
        const __m256 product = _mm256_mul_ps(_mm256_mul_ps(v.v[i], r), w.v[i]);
        // Beyond k zero, also when r is no number.
        v.v[i] = _mm256_and_ps(product, _mm256_castsi256_ps(LaneMask(count - 8 * i)));
      }
      RoundBlock(v, a.b.values + (b * a.b.rows + m) * kBlock);
    }
  }
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

void Rope(const RopeArgs& a) {
  const int64_t half = a.rotary / 2;
  for (int64_t m = a.row_begin; m < a.row_end; ++m) {
    const float* table = a.table + a.positions[m] * a.rotary;
    for (int64_t h = 0; h < a.heads; ++h) {
      float* x = a.x + m * a.ldx + h * a.head_dim;
      int64_t i = 0;
      for (; i + 8 <= half; i += 8) Rotate8(x + i, half, table + 2 * i);
      for (; i < half; ++i) RotateOne(x + i, half, table + 2 * i);
    }
  }
}

void FloatToHalf(const float* x, uint16_t* out, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), ToHalf8(_mm256_loadu_ps(x + i)));
  }
  for (; i < count; ++i) out[i] = _cvtss_sh(x[i], _MM_FROUND_TO_NEAREST_INT);
}

}  // namespace tessera::kernels::avx2
