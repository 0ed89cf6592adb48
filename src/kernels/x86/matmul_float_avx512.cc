// SPDX-License-Identifier: Apache-2.0
//
// As matmul_float_avx2.cc, 512 bits wide: two groups (16 weight rows) side by side in one vector.
#include "kernels/pack.h"
#include "kernels/x86/avx2.h"
#include "kernels/x86/avx512.h"
#include "kernels/x86/vec_avx2.h"

namespace tessera::kernels::avx512 {
namespace {

inline constexpr int64_t kPanel = 128;    // inputs: 16 KiB of weights of two pairs as float32
inline constexpr int kRegisterRows = 12;  // chains: more than latency x units of fma
inline constexpr int64_t kRowTile = 60;   // a multiple of kRegisterRows
inline constexpr int64_t kTilePairs = 8;  // share a copy of the activations; 30 KiB of sums
inline constexpr int64_t kFewRows = 12;   // below, panels cost more than reading again

/// Two groups that lie side by side in the result; `second` repeats the first when there is none.
struct Pair {
  const std::byte* first;
  const std::byte* second;
  int64_t column;
  __mmask16 mask;
};

TESSERA_KERNEL_INLINE Pair PairAt(const MatmulArgs& a, int64_t group_bytes, int64_t group) {
  const bool two = group + 2 <= a.group_end;
  const std::byte* first = a.weights + group * group_bytes;
  const int64_t columns = Min(two ? 16 : 8, a.n - group * kGroupRows);
  return {first, two ? first + group_bytes : first, group * kGroupRows,
          static_cast<__mmask16>((1u << columns) - 1)};
}

TESSERA_KERNEL_INLINE __m256i Join128(const std::byte* low, const std::byte* high) {
  const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(low));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(first),
                                 _mm_loadu_si128(reinterpret_cast<const __m128i*>(high)), 1);
}

/// Sixteen weights (rows) of input k.
template <DType dtype>
TESSERA_KERNEL_INLINE __m512 LoadWeights(const Pair& p, int64_t k) {
  if constexpr (dtype == DType::kF32) {
    const __m512i low = _mm512_castsi256_si512(LoadBytes(p.first + k * 32));
    return _mm512_castsi512_ps(_mm512_inserti64x4(low, LoadBytes(p.second + k * 32), 1));
  } else {
    return _mm512_cvtph_ps(Join128(p.first + k * 16, p.second + k * 16));
  }
}

/// Writes a segment's sum, or adds it to those before.
TESSERA_KERNEL_INLINE void Finish(const MatmulArgs& a, const Pair& p, int64_t m, bool first,
                                  __m512 sum) {
  float* out = a.out + m * a.ld_out + p.column;
  if (!first) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(p.mask, out), sum);
  _mm512_mask_storeu_ps(out, p.mask, sum);
}

/// R rows times a panel of `count` inputs x P pairs; acc is [R][P][16] and carries the chain.
template <int R, int P>
TESSERA_KERNEL_INLINE void AddPanel(const float* panel, int64_t count, const float* x, float* acc) {
  __m512 sum[R][P];
  TESSERA_UNROLL
  for (int i = 0; i < R * P; ++i) sum[i / P][i % P] = _mm512_load_ps(acc + i * 16);
  for (int64_t k = 0; k < count; ++k) {
    __m512 w[P];
    TESSERA_UNROLL
    for (int p = 0; p < P; ++p) w[p] = _mm512_load_ps(panel + (k * P + p) * 16);
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) {
      const __m512 value = _mm512_set1_ps(x[r * kPanel + k]);
      TESSERA_UNROLL
      for (int p = 0; p < P; ++p) sum[r][p] = _mm512_fmadd_ps(w[p], value, sum[r][p]);
    }
  }
  TESSERA_UNROLL
  for (int i = 0; i < R * P; ++i) _mm512_store_ps(acc + i * 16, sum[i / P][i % P]);
}

template <int P>
TESSERA_KERNEL_INLINE void AddPanelRows(const float* panel, int64_t count, const float* x,
                                        int64_t rows, float* acc) {
  int64_t r = 0;
  for (; r + kRegisterRows <= rows; r += kRegisterRows) {
    AddPanel<kRegisterRows, P>(panel, count, x + r * kPanel, acc + r * P * 16);
  }
  for (; r + 4 <= rows; r += 4) AddPanel<4, P>(panel, count, x + r * kPanel, acc + r * P * 16);
  for (; r < rows; ++r) AddPanel<1, P>(panel, count, x + r * kPanel, acc + r * P * 16);
}

/// Inputs [k0, k0 + count) of P pairs, converted, times the rows of `x`.
template <DType dtype, int P>
TESSERA_KERNEL_INLINE void AddWeights(const Pair* pairs, int64_t k0, int64_t count, const float* x,
                                      int64_t rows, float* acc) {
  alignas(64) float panel[kPanel * P * 16];
  for (int64_t k = 0; k < count; ++k) {
    TESSERA_UNROLL
    for (int p = 0; p < P; ++p) {
      _mm512_store_ps(panel + (k * P + p) * 16, LoadWeights<dtype>(pairs[p], k0 + k));
    }
  }
  AddPanelRows<P>(panel, count, x, rows, acc);
}

template <int P>
TESSERA_KERNEL_INLINE void FinishRows(const MatmulArgs& a, const Pair* pairs, int64_t m0,
                                      int64_t rows, bool first, const float* acc) {
  for (int64_t r = 0; r < rows; ++r) {
    TESSERA_UNROLL
    for (int p = 0; p < P; ++p) {
      Finish(a, pairs[p], m0 + r, first, _mm512_load_ps(acc + (r * P + p) * 16));
    }
  }
}

/// Rows of the activations side by side: in place they are k * 4 bytes apart, often a power of two,
/// where twelve of them fall on the same lines of the first cache (4096 inputs: 157 -> 175 GOP/s).
TESSERA_KERNEL_INLINE void CopyRows(const MatmulArgs& a, int64_t m0, int64_t rows, int64_t k0,
                                    int64_t count, float* x) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = a.x + (m0 + r) * a.ldx + k0;
    float* to = x + r * kPanel;
    int64_t k = 0;
    for (; k + 16 <= count; k += 16) _mm512_store_ps(to + k, _mm512_loadu_ps(from + k));
    for (; k < count; ++k) to[k] = from[k];
  }
}

/// Rows [m0, m0 + rows) of `count` pairs of groups.
template <DType dtype>
TESSERA_KERNEL_INLINE void Tile(const MatmulArgs& a, const Pair* pairs, int64_t count, int64_t m0,
                                int64_t rows) {
  alignas(64) float x[kRowTile * kPanel];
  alignas(64) float acc[kTilePairs * kRowTile * 16];
  const int64_t segment = a.k / a.segments;
  for (int64_t begin = 0; begin < a.k; begin += segment) {
    for (int64_t i = 0; i < count * rows; ++i) _mm512_store_ps(acc + i * 16, _mm512_setzero_ps());
    for (int64_t k0 = begin; k0 < begin + segment; k0 += kPanel) {
      const int64_t inputs = Min(kPanel, begin + segment - k0);
      CopyRows(a, m0, rows, k0, inputs, x);
      int64_t p = 0;
      for (; p + 2 <= count; p += 2)
        AddWeights<dtype, 2>(pairs + p, k0, inputs, x, rows, acc + p * rows * 16);
      if (p < count) AddWeights<dtype, 1>(pairs + p, k0, inputs, x, rows, acc + p * rows * 16);
    }
    int64_t p = 0;
    for (; p + 2 <= count; p += 2)
      FinishRows<2>(a, pairs + p, m0, rows, begin == 0, acc + p * rows * 16);
    if (p < count) FinishRows<1>(a, pairs + p, m0, rows, begin == 0, acc + p * rows * 16);
  }
}

}  // namespace

template <DType dtype>
void MatmulFloat(const MatmulArgs& a) {
  const int64_t group_bytes = GroupBytes(dtype, a.k);
  if (a.rows < kFewRows) return avx2::MatmulFloat<dtype>(a);  // Bound by memory: width is no help.
  for (int64_t m0 = 0; m0 < a.rows; m0 += kRowTile) {
    const int64_t rows = Min(kRowTile, a.rows - m0);
    for (int64_t g = a.group_begin; g < a.group_end;) {
      Pair pairs[kTilePairs];
      int64_t count = 0;
      for (; count < kTilePairs && g < a.group_end; g += 2)
        pairs[count++] = PairAt(a, group_bytes, g);
      Tile<dtype>(a, pairs, count, m0, rows);
    }
  }
}

template void MatmulFloat<DType::kF32>(const MatmulArgs&);
template void MatmulFloat<DType::kF16>(const MatmulArgs&);

}  // namespace tessera::kernels::avx512
