// SPDX-License-Identifier: Apache-2.0
//
// Inner loops of attention over one chunk of 64 positions for 256 bits, for a few queries that
// share the loads of K and V.
#pragma once

#include <limits>

#include "kernels/x86/attention_kv.h"

namespace tessera::kernels {
namespace {

/// scores[i][16 b + lane] = chain over d of q[d][i] * k[d][lane] for G blocks from b on; q is
/// [head_dim][ldq], so that the queries of a dim stand side by side.
template <class T, int N, int G>
TESSERA_KERNEL_INLINE void ScoreBlocks8(const ChunkKv<T>& kv, const ChunkKv<T>& ahead, int64_t b,
                                        const float* q, int64_t ldq, int64_t head_dim,
                                        float* scores) {
  __m256 s[N][2 * G];
  TESSERA_UNROLL
  for (int i = 0; i < N; ++i) {
    TESSERA_UNROLL
    for (int j = 0; j < 2 * G; ++j) s[i][j] = _mm256_setzero_ps();
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
      __m256 k[2 * G];
      TESSERA_UNROLL
      for (int j = 0; j < 2 * G; ++j) k[j] = LoadKv8(k_at[j / 2] + d * kKvBlock + j % 2 * 8);
      TESSERA_UNROLL
      for (int i = 0; i < N; ++i) {
        const __m256 x = _mm256_broadcast_ss(q + i);
        TESSERA_UNROLL
        for (int j = 0; j < 2 * G; ++j) s[i][j] = _mm256_fmadd_ps(x, k[j], s[i][j]);
      }
    }
  }
  TESSERA_UNROLL
  for (int i = 0; i < N; ++i) {
    TESSERA_UNROLL
    for (int j = 0; j < 2 * G; ++j) {
      _mm256_storeu_ps(scores + i * kAttentionChunk + b * kKvBlock + 8 * j, s[i][j]);
    }
  }
}

/// o[i][8 * V columns] += e[i][p] * v[p][..] for p in [from, to) of the chunk, ascending.
template <class T, int N, int V>
TESSERA_KERNEL_INLINE void AddColumns8(const ChunkKv<T>& kv, const ChunkKv<T>& ahead,
                                       const float* e, int64_t from, int64_t to, int64_t head_dim,
                                       int64_t column, float* o) {
  __m256 acc[N][V];
  TESSERA_UNROLL
  for (int i = 0; i < N; ++i) {
    TESSERA_UNROLL
    for (int j = 0; j < V; ++j) acc[i][j] = _mm256_loadu_ps(o + i * head_dim + column + 8 * j);
  }
  for (int64_t p = from; p < to;) {
    const int64_t at = (p % kKvBlock) * head_dim + column;
    const T* v = kv.v[p / kKvBlock] + at;
    const T* next = ahead.v[p / kKvBlock] + at;
    const int64_t end = Min(to, (p / kKvBlock + 1) * kKvBlock);
    for (; p < end; ++p, v += head_dim, next += head_dim) {
      TESSERA_UNROLL
      for (int64_t line = 0; line < 8 * V; line += kLineElements<T>) FetchAhead(next + line);
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

TESSERA_KERNEL_INLINE __m256 FinishScore8(__m256 s, const SoftmaxArgs& a) {
  s = _mm256_mul_ps(s, _mm256_set1_ps(a.scale));
  if (a.softcap > 0) {
    const __m256 cap = _mm256_set1_ps(a.softcap), one = _mm256_set1_ps(1.0f);
    const __m256 x = _mm256_div_ps(s, cap);
    const __m256 sigmoid =
        _mm256_div_ps(one, _mm256_add_ps(one, ExpAvx2(Negate(_mm256_add_ps(x, x)))));
    s = _mm256_mul_ps(cap, _mm256_fmadd_ps(_mm256_set1_ps(2.0f), sigmoid, _mm256_set1_ps(-1.0f)));
  }
  return s;
}

/// Online softmax of one query over the chunk. On return scores[] holds exp(score - m), times the
/// scale of V when kScaled, in [from, to); m and sum are updated and o is scaled to the new
/// maximum.
template <bool kScaled>
TESSERA_KERNEL_INLINE void SoftmaxChunk8(const SoftmaxArgs& a, float* scores, float* m, float* sum,
                                         float* o) {
  constexpr int kVectors = kAttentionChunk / 8;
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256 lowest = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
  const int first = static_cast<int>(a.from), last = static_cast<int>(a.to);
  __m256 s[kVectors], mask[kVectors];
  __m256 largest = lowest;
  TESSERA_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    const __m256i at = _mm256_add_epi32(index, _mm256_set1_epi32(8 * i));
    const __m256i before = _mm256_cmpgt_epi32(_mm256_set1_epi32(first), at);
    const __m256i inside = _mm256_cmpgt_epi32(_mm256_set1_epi32(last), at);
    mask[i] = _mm256_castsi256_ps(_mm256_andnot_si256(before, inside));
    s[i] = _mm256_loadu_ps(scores + 8 * i);
    if constexpr (kScaled) {
      s[i] = _mm256_mul_ps(s[i], _mm256_loadu_ps(a.k_scale[i / 2] + i % 2 * 8));
    }
    s[i] = _mm256_blendv_ps(lowest, FinishScore8(s[i], a), mask[i]);
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
    lanes = _mm256_add_ps(lanes, e);
    if constexpr (kScaled) {
      const __m256 scale = _mm256_loadu_ps(a.v_scale[i / 2] + i % 2 * 8);
      _mm256_storeu_ps(scores + 8 * i, _mm256_mul_ps(e, scale));
    } else {
      _mm256_storeu_ps(scores + 8 * i, e);
    }
  }
  const __m256 f = ExpAvx2(_mm256_set1_ps(before - now));
  *m = now;
  *sum = __builtin_fmaf(*sum, _mm256_cvtss_f32(f), Sum8Avx2(lanes));
  if (before == now) return;  // f is exactly 1.
  for (int64_t d = 0; d < a.head_dim; d += 8) {
    _mm256_storeu_ps(o + d, _mm256_mul_ps(_mm256_loadu_ps(o + d), f));
  }
}

/// The inner loops for 256 bits, as attention_walk.h uses them.
struct AttentionAvx2 {
  /// 12 of 16 registers for accumulators where there are so many queries; fewer take more blocks,
  /// as 8 chains hide the latency of an FMA.
  template <class T, int N>
  TESSERA_KERNEL_INLINE void Scores(const ChunkKv<T>& kv, const ChunkKv<T>& ahead, int64_t first,
                                    int64_t last, const float* q, int64_t ldq, int64_t head_dim,
                                    float* scores) {
    ForBlocks(
        first, last, [&]<int G>(int64_t b) __attribute__((always_inline)) {
          constexpr int kTogether = N == 1 ? G : N == 2 && G > 1 ? 2 : 1;
          for (int64_t at = b; at < b + G; at += kTogether) {
            ScoreBlocks8<T, N, kTogether>(kv, ahead, at, q, ldq, head_dim, scores);
          }
        });
  }

  template <class T, int N>
  TESSERA_KERNEL_INLINE void AddValues(const ChunkKv<T>& kv, const ChunkKv<T>& ahead,
                                       const float* e, int64_t from, int64_t to, int64_t head_dim,
                                       float* o) {
    constexpr int V = N == 1 ? 8 : N == 2 ? 4 : 2;
    int64_t column = 0;
    for (; column + 8 * V <= head_dim; column += 8 * V) {
      AddColumns8<T, N, V>(kv, ahead, e, from, to, head_dim, column, o);
    }
    for (; column < head_dim; column += 8) {
      AddColumns8<T, N, 1>(kv, ahead, e, from, to, head_dim, column, o);
    }
  }

  /// A block's elements; `count` is a multiple of kKvBlock.
  template <class T>
  TESSERA_KERNEL_INLINE void ToFloats(const T* from, int64_t count, float* to) {
    for (int64_t i = 0; i < count; i += 8) _mm256_storeu_ps(to + i, LoadKv8(from + i));
  }

  /// Softmax of `count` queries, whose arguments args_of(i) gives; their scores stand
  /// kAttentionChunk apart, their o head_dim.
  template <bool kScaled, class ArgsOf>
  TESSERA_KERNEL_INLINE void Softmaxes(int64_t count, const ArgsOf& args_of, float* scores,
                                       float* m, float* sum, float* o) {
    for (int64_t i = 0; i < count; ++i) {
      const SoftmaxArgs a = args_of(i);
      SoftmaxChunk8<kScaled>(a, scores + i * kAttentionChunk, m + i, sum + i, o + i * a.head_dim);
    }
  }
};

}  // namespace
}  // namespace tessera::kernels
