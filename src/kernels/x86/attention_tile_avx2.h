// SPDX-License-Identifier: Apache-2.0
//
// Inner loops of attention over one chunk of 64 positions, for a few queries that share
// the loads of K and V. T is uint16_t (f16, converted on load: few queries) or float (converted
// before: many queries); the arithmetic is the same.
#pragma once

#include <limits>
#include <type_traits>

#include "kernels/attention.h"
#include "kernels/x86/vec_avx2.h"

namespace tessera::kernels {
namespace {

inline constexpr int64_t kBlocksPerChunk = kAttentionChunk / kKvBlock;

/// Where the 16-position blocks of a chunk are: K as [head_dim][16], V as [16][head_dim].
template <class T>
struct ChunkKv {
  const T* k[kBlocksPerChunk];
  const T* v[kBlocksPerChunk];
};

template <class T>
TESSERA_KERNEL_INLINE __m256 LoadKv8(const T* p) {
  if constexpr (std::is_same_v<T, float>) {
    return _mm256_loadu_ps(p);
  } else {
    return LoadHalf8(p);
  }
}

/// scores[i][0..16) = chain over d of q[i][d] * k[d][0..16).
template <class T, int N>
TESSERA_KERNEL_INLINE void ScoreBlock8(const T* k, const float* q, int64_t head_dim,
                                       float* scores) {
  __m256 s[N][2];
  TESSERA_UNROLL
  for (int i = 0; i < N; ++i) s[i][0] = s[i][1] = _mm256_setzero_ps();
  for (int64_t d = 0; d < head_dim; ++d) {
    const __m256 k0 = LoadKv8(k + d * kKvBlock), k1 = LoadKv8(k + d * kKvBlock + 8);
    TESSERA_UNROLL
    for (int i = 0; i < N; ++i) {
      const __m256 x = _mm256_broadcast_ss(q + i * head_dim + d);
      s[i][0] = _mm256_fmadd_ps(x, k0, s[i][0]);
      s[i][1] = _mm256_fmadd_ps(x, k1, s[i][1]);
    }
  }
  TESSERA_UNROLL
  for (int i = 0; i < N; ++i) {
    _mm256_storeu_ps(scores + i * kAttentionChunk, s[i][0]);
    _mm256_storeu_ps(scores + i * kAttentionChunk + 8, s[i][1]);
  }
}

/// o[i][8 * V columns] += e[i][p] * v[p][..] for p in [from, to) of the chunk, ascending.
template <class T, int N, int V>
TESSERA_KERNEL_INLINE void AddColumns8(const ChunkKv<T>& kv, const float* e, int64_t from,
                                       int64_t to, int64_t head_dim, int64_t column, float* o) {
  __m256 acc[N][V];
  TESSERA_UNROLL
  for (int i = 0; i < N; ++i) {
    TESSERA_UNROLL
    for (int j = 0; j < V; ++j) acc[i][j] = _mm256_loadu_ps(o + i * head_dim + column + 8 * j);
  }
  for (int64_t p = from; p < to;) {
    const T* v = kv.v[p / kKvBlock] + (p % kKvBlock) * head_dim + column;
    const int64_t end = Min(to, (p / kKvBlock + 1) * kKvBlock);
    for (; p < end; ++p, v += head_dim) {
      __m256 value[V];
      TESSERA_UNROLL
      for (int j = 0; j < V; ++j) value[j] = LoadKv8(v + 8 * j);
      TESSERA_UNROLL
      for (int i = 0; i < N; ++i) {
        const __m256 x = _mm256_broadcast_ss(e + i * kAttentionChunk + p);
        TESSERA_UNROLL
        for (int j = 0; j < V; ++j) acc[i][j] = _mm256_fmadd_ps(x, value[j], acc[i][j]);
      }
    }
  }
  TESSERA_UNROLL
  for (int i = 0; i < N; ++i) {
    TESSERA_UNROLL
    for (int j = 0; j < V; ++j) _mm256_storeu_ps(o + i * head_dim + column + 8 * j, acc[i][j]);
  }
}

/// The inner loops for 256 bits, as attention_walk.h uses them.
struct AttentionAvx2 {
  static constexpr int kQueries = 6;  // two vectors of accumulators each: 12 of 16 registers

  template <class T, int N>
  TESSERA_KERNEL_INLINE void ScoreBlock(const T* k, const float* q, int64_t head_dim,
                                        float* scores) {
    ScoreBlock8<T, N>(k, q, head_dim, scores);
  }

  template <class T, int N>
  TESSERA_KERNEL_INLINE void AddValues(const ChunkKv<T>& kv, const float* e, int64_t from,
                                       int64_t to, int64_t head_dim, float* o) {
    int64_t column = 0;
    for (; column + 16 <= head_dim; column += 16) {
      AddColumns8<T, N, 2>(kv, e, from, to, head_dim, column, o);
    }
    if (column < head_dim) AddColumns8<T, N, 1>(kv, e, from, to, head_dim, column, o);
  }
};

/// Calls f.template operator()<N>(first) for runs of N <= most queries (6 or 12).
template <int most, class F>
TESSERA_KERNEL_INLINE void ForQueries(int64_t count, const F& f) {
  int64_t i = 0;
  for (; i + most <= count; i += most) f.template operator()<most>(i);
  if (most > 6 && count - i >= 6) {
    f.template operator()<6>(i);
    i += 6;
  }
  switch (count - i) {
    case 1:
      return f.template operator()<1>(i);
    case 2:
      return f.template operator()<2>(i);
    case 3:
      return f.template operator()<3>(i);
    case 4:
      return f.template operator()<4>(i);
    case 5:
      return f.template operator()<5>(i);
    default:
      return;
  }
}

struct ScoreOptions {
  float scale;
  float softcap;  // 0 = none
};

TESSERA_KERNEL_INLINE __m256 FinishScore(__m256 s, const ScoreOptions& options) {
  s = _mm256_mul_ps(s, _mm256_set1_ps(options.scale));
  if (options.softcap > 0) {
    const __m256 cap = _mm256_set1_ps(options.softcap), one = _mm256_set1_ps(1.0f);
    const __m256 x = _mm256_div_ps(s, cap);
    const __m256 sigmoid =
        _mm256_div_ps(one, _mm256_add_ps(one, ExpAvx2(Negate(_mm256_add_ps(x, x)))));
    s = _mm256_mul_ps(cap, _mm256_fmadd_ps(_mm256_set1_ps(2.0f), sigmoid, _mm256_set1_ps(-1.0f)));
  }
  return s;
}

/// Online softmax of one query over the chunk: positions [from, to) count. On return scores[] holds
/// exp(score - m), zero outside; m and sum are updated and o is scaled to the new maximum.
TESSERA_KERNEL_INLINE void SoftmaxChunk(const ScoreOptions& options, int64_t from, int64_t to,
                                        int64_t head_dim, float* scores, float* m, float* sum,
                                        float* o) {
  constexpr int kVectors = kAttentionChunk / 8;
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256 lowest = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
  __m256 s[kVectors], mask[kVectors];
  __m256 largest = lowest;
  TESSERA_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    const __m256i at = _mm256_add_epi32(index, _mm256_set1_epi32(8 * i));
    const __m256i before = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(from)), at);
    const __m256i inside = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(to)), at);
    mask[i] = _mm256_castsi256_ps(_mm256_andnot_si256(before, inside));
    s[i] = FinishScore(_mm256_loadu_ps(scores + 8 * i), options);
    s[i] = _mm256_blendv_ps(lowest, s[i], mask[i]);
    largest = _mm256_max_ps(largest, s[i]);
  }
  const float before = *m;
  const float chunk_max = Max8Avx2(largest);
  const float now = before < chunk_max ? chunk_max : before;
  const __m256 shift = _mm256_set1_ps(now);
  __m256 lanes = _mm256_setzero_ps();
  TESSERA_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    const __m256 e = _mm256_and_ps(ExpAvx2(_mm256_sub_ps(s[i], shift)), mask[i]);
    _mm256_storeu_ps(scores + 8 * i, e);
    lanes = _mm256_add_ps(lanes, e);
  }
  const __m256 f = ExpAvx2(_mm256_set1_ps(before - now));
  *m = now;
  *sum = __builtin_fmaf(*sum, _mm256_cvtss_f32(f), Sum8Avx2(lanes));
  if (before == now) return;  // f is exactly 1.
  for (int64_t d = 0; d < head_dim; d += 8) {
    _mm256_storeu_ps(o + d, _mm256_mul_ps(_mm256_loadu_ps(o + d), f));
  }
}

}  // namespace
}  // namespace tessera::kernels
