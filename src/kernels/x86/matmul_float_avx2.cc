// SPDX-License-Identifier: Apache-2.0
//
// F32 and F16 weights: lane = weight row, one chain of fma over k per output. Many rows:
// a panel of kPanel inputs of two groups is converted to float32 once (16 KiB, in L1) and used for
// all rows, six at a time; between panels the sums rest in memory, which changes no bit.
#include "kernels/pack.h"
#include "kernels/x86/avx2.h"
#include "kernels/x86/vec_avx2.h"

namespace tessera::kernels::avx2 {
namespace {

inline constexpr int64_t kPanel = 256;
inline constexpr int kFloatRows = 6;  // x 2 groups = 12 accumulators of 16 registers

/// Eight weights (rows) of input k.
template <DType dtype>
TESSERA_KERNEL_INLINE __m256 LoadWeights(const std::byte* group, int64_t k) {
  if constexpr (dtype == DType::kF32) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(group + k * 32));
  } else {
    return LoadHalf8(group + k * 16);
  }
}

/// Once per cache line, asks for the line `ahead` bytes on.
template <DType dtype>
TESSERA_KERNEL_INLINE void PrefetchWeights(const std::byte* group, int64_t k, int64_t ahead) {
  constexpr int64_t kBytes = dtype == DType::kF32 ? 32 : 16;  // of one input
  if (k % (64 / kBytes) != 0) return;
  _mm_prefetch(reinterpret_cast<const char*>(group + k * kBytes + ahead), _MM_HINT_T0);
}

TESSERA_KERNEL_INLINE void Store(const MatmulArgs& a, int64_t m, int64_t group, __m256 v) {
  StorePart(a.out + m * a.ld_out + group * kGroupRows, v, a.n - group * kGroupRows);
}

TESSERA_KERNEL_INLINE __m256 Stored(const MatmulArgs& a, int64_t m, int64_t group) {
  return LoadPart(a.out + m * a.ld_out + group * kGroupRows, a.n - group * kGroupRows);
}

/// R rows and G groups, weights converted on the way, sums in registers.
template <DType dtype, int R, int G>
TESSERA_KERNEL_INLINE void FewRows(const MatmulArgs& a, int64_t group_bytes, int64_t group,
                                   int64_t m) {
  const int64_t ahead = PrefetchDistance(group_bytes, G);
  const std::byte* weights = a.weights + group * group_bytes;
  const float* x = a.x + m * a.ldx;
  const int64_t segment = a.k / a.segments;
  for (int64_t begin = 0; begin < a.k; begin += segment) {
    __m256 acc[R][G];
    TESSERA_UNROLL
    for (int i = 0; i < R * G; ++i) acc[i / G][i % G] = _mm256_setzero_ps();
    for (int64_t k = begin; k < begin + segment; ++k) {
      __m256 w[G];
      TESSERA_UNROLL
      for (int g = 0; g < G; ++g) {
        w[g] = LoadWeights<dtype>(weights + g * group_bytes, k);
        PrefetchWeights<dtype>(weights + g * group_bytes, k, ahead);
      }
      TESSERA_UNROLL
      for (int r = 0; r < R; ++r) {
        const __m256 value = _mm256_broadcast_ss(x + r * a.ldx + k);
        TESSERA_UNROLL
        for (int g = 0; g < G; ++g) acc[r][g] = _mm256_fmadd_ps(w[g], value, acc[r][g]);
      }
    }
    TESSERA_UNROLL
    for (int i = 0; i < R * G; ++i) {
      const int r = i / G, g = i % G;
      if (begin > 0) acc[r][g] = _mm256_add_ps(Stored(a, m + r, group + g), acc[r][g]);
      Store(a, m + r, group + g, acc[r][g]);
    }
  }
}

template <DType dtype, int R, int G>
TESSERA_KERNEL_INLINE void FewRowsAllGroups(const MatmulArgs& a, int64_t group_bytes, int64_t m) {
  int64_t g = a.group_begin;
  for (; g + G <= a.group_end; g += G) FewRows<dtype, R, G>(a, group_bytes, g, m);
  for (; g < a.group_end; ++g) FewRows<dtype, R, 1>(a, group_bytes, g, m);
}

/// Below this many rows converting a panel costs more than reading the weights again.
inline constexpr int64_t kFewRows = 16;

/// Rows in near-equal runs of at most kFloatRows.
template <DType dtype>
TESSERA_KERNEL_INLINE void MatmulFew(const MatmulArgs& a, int64_t group_bytes) {
  const int64_t runs = (a.rows + kFloatRows - 1) / kFloatRows;
  for (int64_t i = 0, m = 0; i < runs; ++i) {
    const int64_t rows = (a.rows - m + runs - i - 1) / (runs - i);
    switch (rows) {
      case 1:
        FewRowsAllGroups<dtype, 1, 4>(a, group_bytes, m);
        break;
      case 2:
        FewRowsAllGroups<dtype, 2, 4>(a, group_bytes, m);
        break;
      case 3:
        FewRowsAllGroups<dtype, 3, 4>(a, group_bytes, m);
        break;
      case 4:
        FewRowsAllGroups<dtype, 4, 2>(a, group_bytes, m);
        break;
      case 5:
        FewRowsAllGroups<dtype, 5, 2>(a, group_bytes, m);
        break;
      default:
        FewRowsAllGroups<dtype, 6, 2>(a, group_bytes, m);
        break;
    }
    m += rows;
  }
}

/// R rows times a panel of `count` inputs; acc is [R][G][8] and carries the chain.
template <int R, int G>
TESSERA_KERNEL_INLINE void AddPanel(const float* panel, int64_t count, const float* x, int64_t ldx,
                                    float* acc) {
  __m256 s[R][G];
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) {
    TESSERA_UNROLL
    for (int g = 0; g < G; ++g) s[r][g] = _mm256_load_ps(acc + (r * G + g) * 8);
  }
  for (int64_t k = 0; k < count; ++k) {
    __m256 w[G];
    TESSERA_UNROLL
    for (int g = 0; g < G; ++g) w[g] = _mm256_load_ps(panel + (k * G + g) * 8);
    TESSERA_UNROLL
    for (int r = 0; r < R; ++r) {
      const __m256 value = _mm256_broadcast_ss(x + r * ldx + k);
      TESSERA_UNROLL
      for (int g = 0; g < G; ++g) s[r][g] = _mm256_fmadd_ps(w[g], value, s[r][g]);
    }
  }
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) {
    TESSERA_UNROLL
    for (int g = 0; g < G; ++g) _mm256_store_ps(acc + (r * G + g) * 8, s[r][g]);
  }
}

inline constexpr int64_t kFloatTile = 60;  // rows; a multiple of kFloatRows

template <DType dtype, int G>
TESSERA_KERNEL_INLINE void Tile(const MatmulArgs& a, int64_t group_bytes, int64_t group, int64_t m0,
                                int64_t rows) {
  alignas(64) float panel[kPanel * G * 8];
  alignas(64) float acc[kFloatTile * G * 8];
  const std::byte* weights = a.weights + group * group_bytes;
  const int64_t segment = a.k / a.segments;
  for (int64_t begin = 0; begin < a.k; begin += segment) {
    for (int64_t i = 0; i < rows * G; ++i) _mm256_store_ps(acc + i * 8, _mm256_setzero_ps());
    for (int64_t k0 = begin; k0 < begin + segment; k0 += kPanel) {
      const int64_t count = Min(kPanel, begin + segment - k0);
      for (int64_t k = 0; k < count; ++k) {
        TESSERA_UNROLL
        for (int g = 0; g < G; ++g) {
          _mm256_store_ps(panel + (k * G + g) * 8,
                          LoadWeights<dtype>(weights + g * group_bytes, k0 + k));
        }
      }
      const float* x = a.x + m0 * a.ldx + k0;
      int64_t r = 0;
      for (; r + kFloatRows <= rows; r += kFloatRows) {
        AddPanel<kFloatRows, G>(panel, count, x + r * a.ldx, a.ldx, acc + r * G * 8);
      }
      for (; r + 2 <= rows; r += 2) {
        AddPanel<2, G>(panel, count, x + r * a.ldx, a.ldx, acc + r * G * 8);
      }
      if (r < rows) AddPanel<1, G>(panel, count, x + r * a.ldx, a.ldx, acc + r * G * 8);
    }
    for (int64_t r = 0; r < rows; ++r) {
      TESSERA_UNROLL
      for (int g = 0; g < G; ++g) {
        __m256 v = _mm256_load_ps(acc + (r * G + g) * 8);
        if (begin > 0) v = _mm256_add_ps(Stored(a, m0 + r, group + g), v);
        Store(a, m0 + r, group + g, v);
      }
    }
  }
}

}  // namespace

template <DType dtype>
void MatmulFloat(const MatmulArgs& a) {
  const int64_t group_bytes = GroupBytes(dtype, a.k);
  if (a.rows < kFewRows) return MatmulFew<dtype>(a, group_bytes);
  for (int64_t m0 = 0; m0 < a.rows; m0 += kFloatTile) {
    const int64_t rows = Min(kFloatTile, a.rows - m0);
    int64_t g = a.group_begin;
    for (; g + 2 <= a.group_end; g += 2) Tile<dtype, 2>(a, group_bytes, g, m0, rows);
    if (g < a.group_end) Tile<dtype, 1>(a, group_bytes, g, m0, rows);
  }
}

template void MatmulFloat<DType::kF32>(const MatmulArgs&);
template void MatmulFloat<DType::kF16>(const MatmulArgs&);

}  // namespace tessera::kernels::avx2
