// SPDX-License-Identifier: Apache-2.0
//
// Inner loops of attention for 512 bits: the 16 positions of a K block are one vector.
#pragma once

#include "kernels/x86/attention_tile_avx2.h"

namespace tessera::kernels {
namespace {

template <class T>
TESSERA_KERNEL_INLINE __m512 LoadKv16(const T* p) {
  if constexpr (std::is_same_v<T, float>) {
    return _mm512_loadu_ps(p);
  } else {
    return _mm512_cvtph_ps(LoadBytes(p));
  }
}

/// As AddColumns8, for V vectors of 16 columns.
template <class T, int N, int V>
TESSERA_KERNEL_INLINE void AddColumns16(const ChunkKv<T>& kv, const float* e, int64_t from,
                                        int64_t to, int64_t head_dim, int64_t column, float* o) {
  __m512 acc[N][V];
  TESSERA_UNROLL
  for (int i = 0; i < N; ++i) {
    TESSERA_UNROLL
    for (int j = 0; j < V; ++j) acc[i][j] = _mm512_loadu_ps(o + i * head_dim + column + 16 * j);
  }
  for (int64_t p = from; p < to;) {
    const T* v = kv.v[p / kKvBlock] + (p % kKvBlock) * head_dim + column;
    const int64_t end = Min(to, (p / kKvBlock + 1) * kKvBlock);
    for (; p < end; ++p, v += head_dim) {
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

struct AttentionAvx512 {
  static constexpr int kQueries = 12;  // x 2 vectors of columns = 24 of 32 registers

  template <class T, int N>
  TESSERA_KERNEL_INLINE void ScoreBlock(const T* k, const float* q, int64_t head_dim,
                                        float* scores) {
    __m512 s[N];
    TESSERA_UNROLL
    for (int i = 0; i < N; ++i) s[i] = _mm512_setzero_ps();
    for (int64_t d = 0; d < head_dim; ++d) {
      const __m512 positions = LoadKv16(k + d * kKvBlock);
      TESSERA_UNROLL
      for (int i = 0; i < N; ++i) {
        s[i] = _mm512_fmadd_ps(_mm512_set1_ps(q[i * head_dim + d]), positions, s[i]);
      }
    }
    TESSERA_UNROLL
    for (int i = 0; i < N; ++i) _mm512_storeu_ps(scores + i * kAttentionChunk, s[i]);
  }

  template <class T, int N>
  TESSERA_KERNEL_INLINE void AddValues(const ChunkKv<T>& kv, const float* e, int64_t from,
                                       int64_t to, int64_t head_dim, float* o) {
    int64_t column = 0;
    for (; column + 32 <= head_dim; column += 32) {
      AddColumns16<T, N, 2>(kv, e, from, to, head_dim, column, o);
    }
    if (column + 16 <= head_dim) {
      AddColumns16<T, N, 1>(kv, e, from, to, head_dim, column, o);
      column += 16;
    }
    if (column < head_dim) AddColumns8<T, N, 1>(kv, e, from, to, head_dim, column, o);
  }
};

}  // namespace
}  // namespace tessera::kernels
