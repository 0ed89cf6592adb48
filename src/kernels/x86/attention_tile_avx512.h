// SPDX-License-Identifier: Apache-2.0
//
// Inner loops of attention for 512 bits: the 16 positions of a K block are one vector.
#pragma once

#include "kernels/x86/attention_tile_avx2.h"
#include "kernels/x86/vec_avx512.h"

namespace tessera::kernels {
namespace {

template <class T>
TESSERA_KERNEL_INLINE __m512 LoadKv16(const T* p) {
  if constexpr (std::is_same_v<T, float>) {
    return _mm512_loadu_ps(p);
  } else if constexpr (std::is_same_v<T, int8_t>) {
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  } else {
    return _mm512_cvtph_ps(LoadBytes(p));
  }
}

/// As AddColumns8, for V vectors of 16 columns.
template <class T, int N, int V>
TESSERA_KERNEL_INLINE void AddColumns16(const ChunkKv<T>& kv, const ChunkKv<T>& ahead,
                                        const float* e, int64_t from, int64_t to, int64_t head_dim,
                                        int64_t column, float* o) {
  __m512 acc[N][V];
  TESSERA_UNROLL
  for (int i = 0; i < N; ++i) {
    TESSERA_UNROLL
    for (int j = 0; j < V; ++j) acc[i][j] = _mm512_loadu_ps(o + i * head_dim + column + 16 * j);
  }
  for (int64_t p = from; p < to;) {
    const int64_t at = (p % kKvBlock) * head_dim + column;
    const T* v = kv.v[p / kKvBlock] + at;
    const T* next = ahead.v[p / kKvBlock] + at;
    const int64_t end = Min(to, (p / kKvBlock + 1) * kKvBlock);
    for (; p < end; ++p, v += head_dim, next += head_dim) {
      TESSERA_UNROLL
      for (int64_t line = 0; line < 16 * V; line += kLineElements<T>) FetchAhead(next + line);
      __m512 value[V];
      TESSERA_UNROLL
      for (int j = 0; j < V; ++j) value[j] = LoadKv16(v + 16 * j);
      TESSERA_UNROLL
      for (int i = 0; i < N; ++i) {
        const __m512 x = _mm512_set1_ps(e[i * kAttentionChunk + p]);
        TESSERA_UNROLL
        for (int j = 0; j < V; ++j) acc[i][j] = _mm512_fmadd_ps(x, value[j], acc[i][j]);
      }
    }
  }
  TESSERA_UNROLL
  for (int i = 0; i < N; ++i) {
    TESSERA_UNROLL
    for (int j = 0; j < V; ++j) _mm512_storeu_ps(o + i * head_dim + column + 16 * j, acc[i][j]);
  }
}

/// As ScoreBlocks8; a block's 16 positions are one vector.
template <class T, int N, int G>
TESSERA_KERNEL_INLINE void ScoreBlocks16(const ChunkKv<T>& kv, const ChunkKv<T>& ahead, int64_t b,
                                         const float* q, int64_t ldq, int64_t head_dim,
                                         float* scores) {
  __m512 s[N][G];
  TESSERA_UNROLL
  for (int i = 0; i < N; ++i) {
    TESSERA_UNROLL
    for (int g = 0; g < G; ++g) s[i][g] = _mm512_setzero_ps();
  }
  const T *k_at[G], *ahead_at[G];
  TESSERA_UNROLL
  for (int g = 0; g < G; ++g) {
    k_at[g] = kv.k[b + g];
    ahead_at[g] = ahead.k[b + g];
  }
  for (int64_t line = 0; line < head_dim; line += kLineDims<T>) {
    TESSERA_UNROLL
    for (int g = 0; g < G; ++g) FetchAhead(ahead_at[g] + line * kKvBlock);
    TESSERA_UNROLL
    for (int64_t d = line; d < line + kLineDims<T>; ++d, q += ldq) {
      __m512 k[G];
      TESSERA_UNROLL
      for (int j = 0; j < G; ++j) k[j] = LoadKv16(k_at[j] + d * kKvBlock);
      TESSERA_UNROLL
      for (int i = 0; i < N; ++i) {
        const __m512 x = _mm512_set1_ps(q[i]);
        TESSERA_UNROLL
        for (int j = 0; j < G; ++j) s[i][j] = _mm512_fmadd_ps(x, k[j], s[i][j]);
      }
    }
  }
  TESSERA_UNROLL
  for (int i = 0; i < N; ++i) {
    TESSERA_UNROLL
    for (int g = 0; g < G; ++g) {
      _mm512_storeu_ps(scores + i * kAttentionChunk + (b + g) * kKvBlock, s[i][g]);
    }
  }
}

TESSERA_KERNEL_INLINE __m512 FinishScore16(__m512 s, const SoftmaxArgs& a) {
  s = _mm512_mul_ps(s, _mm512_set1_ps(a.scale));
  if (a.softcap > 0) {
    const __m512 cap = _mm512_set1_ps(a.softcap), one = _mm512_set1_ps(1.0f);
    const __m512 x = _mm512_div_ps(s, cap);
    const __m512 minus = _mm512_xor_ps(_mm512_add_ps(x, x), _mm512_set1_ps(-0.0f));
    const __m512 sigmoid = _mm512_div_ps(one, _mm512_add_ps(one, ExpAvx512(minus)));
    s = _mm512_mul_ps(cap, _mm512_fmadd_ps(_mm512_set1_ps(2.0f), sigmoid, _mm512_set1_ps(-1.0f)));
  }
  return s;
}

/// Which positions of the chunk count.
TESSERA_KERNEL_INLINE uint64_t InsideMask(const SoftmaxArgs& a) {
  return (~uint64_t{0} >> (kAttentionChunk - a.to)) & (~uint64_t{0} << a.from);
}

/// o *= factor.
TESSERA_KERNEL_INLINE void Rescale16(float* o, int64_t head_dim, float factor) {
  const __m512 f = _mm512_set1_ps(factor);
  int64_t d = 0;
  for (; d + 16 <= head_dim; d += 16) {
    _mm512_storeu_ps(o + d, _mm512_mul_ps(_mm512_loadu_ps(o + d), f));
  }
  if (d < head_dim) {
    _mm256_storeu_ps(o + d, _mm256_mul_ps(_mm256_loadu_ps(o + d), _mm512_castps512_ps256(f)));
  }
}

/// As SoftmaxChunk8, the eight partial sums included.
template <bool kScaled>
TESSERA_KERNEL_INLINE void SoftmaxChunk16(const SoftmaxArgs& a, float* scores, float* m, float* sum,
                                          float* o) {
  constexpr int kVectors = kAttentionChunk / 16;
  const uint64_t inside = InsideMask(a);
  const __m512 lowest = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  __m512 s[kVectors];
  TESSERA_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    s[i] = _mm512_loadu_ps(scores + 16 * i);
    if constexpr (kScaled) s[i] = _mm512_mul_ps(s[i], _mm512_loadu_ps(a.k_scale[i]));
    s[i] = _mm512_mask_mov_ps(lowest, static_cast<__mmask16>(inside >> (16 * i)),
                              FinishScore16(s[i], a));
  }
  const __m512 largest = _mm512_max_ps(_mm512_max_ps(s[0], s[1]), _mm512_max_ps(s[2], s[3]));
  const float before = *m;
  const float chunk_max =
      Max8Avx2(_mm256_max_ps(_mm512_castps512_ps256(largest), _mm512_extractf32x8_ps(largest, 1)));
  const float now = before < chunk_max ? chunk_max : before;
  const __m512 shift = _mm512_set1_ps(now);
  __m256 lanes = _mm256_setzero_ps();
  TESSERA_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    const __m512 e = _mm512_maskz_mov_ps(static_cast<__mmask16>(inside >> (16 * i)),
                                         ExpAvx512(_mm512_sub_ps(s[i], shift)));
    lanes = _mm256_add_ps(lanes, _mm512_castps512_ps256(e));
    lanes = _mm256_add_ps(lanes, _mm512_extractf32x8_ps(e, 1));
    if constexpr (kScaled) {
      _mm512_storeu_ps(scores + 16 * i, _mm512_mul_ps(e, _mm512_loadu_ps(a.v_scale[i])));
    } else {
      _mm512_storeu_ps(scores + 16 * i, e);
    }
  }
  *m = now;
  if (before == now) {  // The factor of what was before is exactly 1.
    *sum = __builtin_fmaf(*sum, 1.0f, Sum8Avx2(lanes));
    return;
  }
  const __m256 f = ExpAvx2(_mm256_set1_ps(before - now));
  *sum = __builtin_fmaf(*sum, _mm256_cvtss_f32(f), Sum8Avx2(lanes));
  Rescale16(o, a.head_dim, _mm256_cvtss_f32(f));
}

/// Sums of eight, in the order of elementwise.h, of sixteen vectors. `folded` has v[i] + v[i + 4]
/// of each, four after four.
TESSERA_KERNEL_INLINE __m512 Sums16(const float* folded) {
  __m512 s[4];
  TESSERA_UNROLL
  for (int i = 0; i < 4; ++i) {
    const __m512 v = _mm512_load_ps(folded + 16 * i);
    s[i] = _mm512_add_ps(v, _mm512_permute_ps(v, 0x4e));
    s[i] = _mm512_add_ps(s[i], _mm512_permute_ps(s[i], 0xb1));
  }
  // One lane of each four.
  const __m512i pick = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 0, 0, 0, 0, 0, 0, 0);
  const __m512 low = _mm512_permutex2var_ps(s[0], pick, s[1]);
  const __m512 high = _mm512_permutex2var_ps(s[2], pick, s[3]);
  return _mm512_insertf32x8(low, _mm512_castps512_ps256(high), 1);
}

/// As SoftmaxChunk16 for sixteen queries: what a query has one of (maximum, factor, sum) is a lane.
template <bool kScaled, class ArgsOf>
TESSERA_KERNEL_INLINE void SoftmaxOf16(const ArgsOf& args_of, float* scores, float* m, float* sum,
                                       float* o) {
  constexpr int kVectors = kAttentionChunk / 16;
  const __m512 lowest = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  __m512 largest[16];
  for (int64_t i = 0; i < 16; ++i) {
    const SoftmaxArgs a = args_of(i);
    const uint64_t inside = InsideMask(a);
    float* to = scores + i * kAttentionChunk;
    __m512 most = lowest;
    TESSERA_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      __m512 s = _mm512_loadu_ps(to + 16 * j);
      if constexpr (kScaled) s = _mm512_mul_ps(s, _mm512_loadu_ps(a.k_scale[j]));
      s = FinishScore16(s, a);
      _mm512_storeu_ps(to + 16 * j, s);
      most = _mm512_mask_max_ps(most, static_cast<__mmask16>(inside >> (16 * j)), most, s);
    }
    largest[i] = most;
  }
  const __m512 before = _mm512_loadu_ps(m);
  const __m512 now = _mm512_max_ps(ReduceEach16<MaxFloats>(largest), before);
  const __m512 factors = ExpOfNegative(0xffff, _mm512_sub_ps(before, now));
  alignas(64) float shift[16], factor[16], folded[64];
  _mm512_store_ps(shift, now);
  _mm512_store_ps(factor, factors);
  for (int64_t i = 0; i < 16; ++i) {
    const SoftmaxArgs a = args_of(i);
    const uint64_t inside = InsideMask(a);
    float* to = scores + i * kAttentionChunk;
    __m256 lanes = _mm256_setzero_ps();
    TESSERA_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      const __m512 x = _mm512_sub_ps(_mm512_loadu_ps(to + 16 * j), _mm512_set1_ps(shift[i]));
      const __m512 e = ExpOfNegative(static_cast<__mmask16>(inside >> (16 * j)), x);
      lanes = _mm256_add_ps(lanes, _mm512_castps512_ps256(e));
      lanes = _mm256_add_ps(lanes, _mm512_extractf32x8_ps(e, 1));
      if constexpr (kScaled) {
        _mm512_storeu_ps(to + 16 * j, _mm512_mul_ps(e, _mm512_loadu_ps(a.v_scale[j])));
      } else {
        _mm512_storeu_ps(to + 16 * j, e);
      }
    }
    _mm_store_ps(folded + 4 * i,
                 _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1)));
    Rescale16(o + i * a.head_dim, a.head_dim, factor[i]);
  }
  _mm512_storeu_ps(m, now);
  _mm512_storeu_ps(sum, _mm512_fmadd_ps(_mm512_loadu_ps(sum), factors, Sums16(folded)));
}

/// The inner loops for 512 bits, as attention_walk.h uses them: 6 queries by 4 vectors are 24 of 32
/// registers, and 10 loads for 24 FMAs.
struct AttentionAvx512 {
  template <class T, int N>
  TESSERA_KERNEL_INLINE void Scores(const ChunkKv<T>& kv, const ChunkKv<T>& ahead, int64_t first,
                                    int64_t last, const float* q, int64_t ldq, int64_t head_dim,
                                    float* scores) {
    ForBlocks(
        first, last, [&]<int G>(int64_t b) __attribute__((always_inline)) {
          ScoreBlocks16<T, N, G>(kv, ahead, b, q, ldq, head_dim, scores);
        });
  }

  template <class T, int N>
  TESSERA_KERNEL_INLINE void AddValues(const ChunkKv<T>& kv, const ChunkKv<T>& ahead,
                                       const float* e, int64_t from, int64_t to, int64_t head_dim,
                                       float* o) {
    int64_t column = 0;
    for (; column + 64 <= head_dim; column += 64) {
      AddColumns16<T, N, 4>(kv, ahead, e, from, to, head_dim, column, o);
    }
    for (; column + 16 <= head_dim; column += 16) {
      AddColumns16<T, N, 1>(kv, ahead, e, from, to, head_dim, column, o);
    }
    if (column < head_dim) AddColumns8<T, N, 1>(kv, ahead, e, from, to, head_dim, column, o);
  }

  template <class T>
  TESSERA_KERNEL_INLINE void ToFloats(const T* from, int64_t count, float* to) {
    for (int64_t i = 0; i < count; i += 16) _mm512_storeu_ps(to + i, LoadKv16(from + i));
  }

  template <bool kScaled, class ArgsOf>
  TESSERA_KERNEL_INLINE void Softmaxes(int64_t count, const ArgsOf& args_of, float* scores,
                                       float* m, float* sum, float* o) {
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
      SoftmaxOf16<kScaled>([&](int64_t j) { return args_of(i + j); }, scores + i * kAttentionChunk,
                           m + i, sum + i, o + i * args_of(i).head_dim);
    }
    for (; i < count; ++i) {
      const SoftmaxArgs a = args_of(i);
      SoftmaxChunk16<kScaled>(a, scores + i * kAttentionChunk, m + i, sum + i, o + i * a.head_dim);
    }
  }
};

}  // namespace
}  // namespace tessera::kernels
