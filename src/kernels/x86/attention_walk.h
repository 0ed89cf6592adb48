// SPDX-License-Identifier: Apache-2.0
//
// The walk of attention: tiles of query rows, splits, chunks, blocks in their pages. `Ops` holds
// the inner loops of one vector width (attention_tile_avx2.h, attention_tile_avx512.h).
#pragma once

#include "kernels/x86/attention_tile_avx2.h"

namespace tessera::kernels {
namespace {

/// More queries than this share the cost of converting a chunk once.
inline constexpr int64_t kDirectQueries = 6;

/// Up to kAttentionRows rows of one KV head: query i = row i / group, head i % group.
struct TileState {
  const AttentionArgs& a;
  int64_t head;
  int64_t start;  // position of the tile's row 0
  int64_t rows;
  int64_t queries;  // rows * group
  float* k;         // [4][head_dim][16] float32 K of the chunk
  float* v;         // [64][head_dim]
  float* q;         // [head_dim][queries]
  float* scores;    // [queries][64]
  float* part;      // [queries][head_dim]: of the current split
  float* total;     // [queries][head_dim]: of the splits before
  float* m;         // [queries]
  float* sum;
  float* total_m;
  float* total_sum;

  [[gnu::always_inline]] int64_t Begin(int64_t row) const {
    return a.window > 0 ? Max(0, start + row + 1 - a.window) : 0;
  }
  [[gnu::always_inline]] int64_t End(int64_t row) const { return start + row + 1; }
};

/// Columns [d, d + 8) of eight rows to the eight rows of `to`.
TESSERA_KERNEL_INLINE void Transpose8(const float* const (&rows)[8], int64_t d, float* to,
                                      int64_t ld) {
  __m256 pairs[8], quads[8];
  TESSERA_UNROLL
  for (int i = 0; i < 8; i += 2) {
    const __m256 a = _mm256_loadu_ps(rows[i] + d), b = _mm256_loadu_ps(rows[i + 1] + d);
    pairs[i] = _mm256_unpacklo_ps(a, b);
    pairs[i + 1] = _mm256_unpackhi_ps(a, b);
  }
  TESSERA_UNROLL
  for (int i = 0; i < 8; i += 4) {
    TESSERA_UNROLL
    for (int j = 0; j < 2; ++j) {
      const __m256 a = pairs[i + j], b = pairs[i + 2 + j];
      quads[i + 2 * j] = _mm256_shuffle_ps(a, b, 0x44);
      quads[i + 2 * j + 1] = _mm256_shuffle_ps(a, b, 0xee);
    }
  }
  TESSERA_UNROLL
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * ld, _mm256_permute2f128_ps(quads[i], quads[4 + i], 0x20));
    _mm256_storeu_ps(to + (4 + i) * ld, _mm256_permute2f128_ps(quads[i], quads[4 + i], 0x31));
  }
}

TESSERA_KERNEL_INLINE TileState MakeTile(const AttentionArgs& a, int64_t head, int64_t row0,
                                         int64_t rows) {
  const int64_t dim = a.layout.head_dim, queries = rows * a.group;
  float* next = reinterpret_cast<float*>(a.scratch);
  const auto take = [&next](int64_t count) {
    float* at = next;
    next += count;
    return at;
  };
  TileState t{.a = a,
              .head = head,
              .start = a.start + row0,
              .rows = rows,
              .queries = queries,
              .k = take(kAttentionChunk * dim),
              .v = take(kAttentionChunk * dim),
              .q = take(queries * dim),
              .scores = take(queries * kAttentionChunk),
              .part = take(queries * dim),
              .total = take(queries * dim),
              .m = take(queries),
              .sum = take(queries),
              .total_m = take(queries),
              .total_sum = take(queries)};
  const auto q = [&](int64_t i) {
    return a.q + (row0 + i / a.group) * a.ldq + (head * a.group + i % a.group) * dim;
  };
  int64_t i = 0;
  for (; i + 8 <= queries; i += 8) {
    const float* rows_of_q[8];
    for (int64_t j = 0; j < 8; ++j) rows_of_q[j] = q(i + j);
    for (int64_t d = 0; d < dim; d += 8) Transpose8(rows_of_q, d, t.q + d * queries + i, queries);
  }
  for (; i < queries; ++i) {
    const float* row = q(i);
    for (int64_t d = 0; d < dim; ++d) t.q[d * queries + i] = row[d];
  }
  return t;
}

/// The blocks [first, last) of the chunk in their pages.
template <class T>
TESSERA_KERNEL_INLINE ChunkKv<T> Locate(const TileState& t, int64_t chunk, int64_t first,
                                        int64_t last) {
  const KvLayout& layout = t.a.layout;
  ChunkKv<T> kv = {};
  for (int64_t b = first; b < last; ++b) {
    const int64_t position = chunk + b * kKvBlock;
    const int64_t slot = position % layout.page_tokens;
    const std::byte* page =
        t.a.pool + t.a.pages[position / layout.page_tokens] * layout.PageBytes();
    const std::byte* plane = page + layout.KPlane(t.a.layer, t.head);
    kv.k[b] = reinterpret_cast<const T*>(plane) + slot * layout.head_dim;
    kv.v[b] = reinterpret_cast<const T*>(plane + layout.PlaneBytes()) + slot * layout.head_dim;
    if constexpr (kScaled<T>) {
      kv.k_scale[b] = reinterpret_cast<const float*>(page + layout.KScale(t.a.layer, t.head, slot));
      kv.v_scale[b] = reinterpret_cast<const float*>(page + layout.VScale(t.a.layer, t.head, slot));
    }
  }
  if constexpr (kScaled<T>) {  // Softmax reads the scales of all blocks and drops what is outside.
    for (int64_t b = 0; b < kBlocksPerChunk && first < last; ++b) {
      if (b >= first && b < last) continue;
      kv.k_scale[b] = kv.k_scale[first];
      kv.v_scale[b] = kv.v_scale[first];
    }
  }
  return kv;
}

/// The blocks of the chunk at `chunk`; where the rows see none, those of the `last` one again,
/// which costs little to ask for.
template <class T>
TESSERA_KERNEL_INLINE ChunkKv<T> LocateNext(const TileState& t, int64_t chunk,
                                            const ChunkKv<T>& last) {
  const int64_t ahead = Min(kAttentionChunk, t.End(t.rows - 1) - chunk);
  const int64_t blocks = Max((ahead + kKvBlock - 1) / kKvBlock, 0);
  ChunkKv<T> next = Locate<T>(t, chunk, 0, blocks);
  for (int64_t b = blocks; b < kBlocksPerChunk; ++b) {
    next.k[b] = last.k[b];
    next.v[b] = last.v[b];
  }
  if constexpr (kScaled<T>) {
    for (int64_t b = 0; b < blocks; ++b) {  // A line each.
      _mm_prefetch(reinterpret_cast<const char*>(next.k_scale[b]), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(next.v_scale[b]), _MM_HINT_T0);
    }
  }
  return next;
}

/// Asks for all of a chunk.
template <class T>
TESSERA_KERNEL_INLINE void Prefetch(const ChunkKv<T>& kv, int64_t head_dim) {
  for (int64_t b = 0; b < kBlocksPerChunk; ++b) {
    if (kv.k[b] == nullptr) continue;
    for (int64_t at = 0; at < kKvBlock * head_dim; at += kLineElements<T>) {
      FetchAhead(kv.k[b] + at);
      FetchAhead(kv.v[b] + at);
    }
  }
}

/// The same in float32, in the tile's buffers.
template <class Ops, class T>
TESSERA_KERNEL_INLINE ChunkKv<float> Convert(const TileState& t, const ChunkKv<T>& from,
                                             int64_t first, int64_t last) {
  const int64_t size = kKvBlock * t.a.layout.head_dim;
  ChunkKv<float> kv = {};
  for (int64_t b = first; b < last; ++b) {
    Ops::ToFloats(from.k[b], size, t.k + b * size);
    Ops::ToFloats(from.v[b], size, t.v + b * size);
    kv.k[b] = t.k + b * size;
    kv.v[b] = t.v + b * size;
  }
  for (int64_t b = 0; b < kBlocksPerChunk; ++b) {
    kv.k_scale[b] = from.k_scale[b];
    kv.v_scale[b] = from.v_scale[b];
  }
  return kv;
}

/// Adds positions [from, to) of the chunk for queries [begin, begin + count).
template <class Ops, class T>
TESSERA_KERNEL_INLINE void Values(const TileState& t, const ChunkKv<T>& kv, const ChunkKv<T>& ahead,
                                  int64_t begin, int64_t count, int64_t from, int64_t to) {
  if (from >= to) return;
  const int64_t dim = t.a.layout.head_dim;
  ForQueries(
      count, [&]<int N>(int64_t i) __attribute__((always_inline)) {
        Ops::template AddValues<T, N>(kv, ahead, t.scores + (begin + i) * kAttentionChunk, from, to,
                                      dim, t.part + (begin + i) * dim);
      });
}

/// Rows [row_begin, row_end) of the tile see something of the chunk; `ahead` is what comes after
/// it.
template <class Ops, bool scaled, class T>
TESSERA_KERNEL_INLINE void Chunk(const TileState& t, const ChunkKv<T>& kv, const ChunkKv<T>& ahead,
                                 int64_t chunk, int64_t first, int64_t last, int64_t row_begin,
                                 int64_t row_end) {
  const int64_t dim = t.a.layout.head_dim, group = t.a.group;
  const auto from = [&](int64_t row) { return Max(t.Begin(row) - chunk, 0); };
  const auto to = [&](int64_t row) { return Min(t.End(row) - chunk, kAttentionChunk); };
  const int64_t begin = row_begin * group, count = (row_end - row_begin) * group;
  ForQueries(
      count, [&]<int N>(int64_t i) __attribute__((always_inline)) {
        Ops::template Scores<T, N>(kv, ahead, first, last, t.q + begin + i, t.queries, dim,
                                   t.scores + (begin + i) * kAttentionChunk);
      });
  const auto softmax_of = [&](int64_t i) {
    const int64_t row = (begin + i) / group;
    return SoftmaxArgs{t.a.scale, t.a.softcap, from(row), to(row), dim, kv.k_scale, kv.v_scale};
  };
  Ops::template Softmaxes<scaled>(count, softmax_of, t.scores + begin * kAttentionChunk,
                                  t.m + begin, t.sum + begin, t.part + begin * dim);
  // What all rows see together; before and after it each row alone. Ascending for every row.
  const int64_t common_from = Min(from(row_end - 1), to(row_begin));
  const int64_t common_to = to(row_begin);
  for (int64_t row = row_begin; row < row_end; ++row) {
    Values<Ops>(t, kv, ahead, row * group, group, from(row), Min(common_from, to(row)));
  }
  Values<Ops>(t, kv, ahead, begin, count, common_from, common_to);
  for (int64_t row = row_begin; row < row_end; ++row) {
    Values<Ops>(t, kv, ahead, row * group, group, Max(common_to, from(row)), to(row));
  }
}

/// Merges the split's part into the total of row `row`, or starts the total with it.
TESSERA_KERNEL_INLINE void MergeRow(const TileState& t, int64_t row, bool starts) {
  const int64_t dim = t.a.layout.head_dim;
  for (int64_t i = row * t.a.group; i < (row + 1) * t.a.group; ++i) {
    float* total = t.total + i * dim;
    const float* part = t.part + i * dim;
    if (starts) {
      for (int64_t d = 0; d < dim; d += 8) _mm256_storeu_ps(total + d, _mm256_loadu_ps(part + d));
      t.total_m[i] = t.m[i];
      t.total_sum[i] = t.sum[i];
      continue;
    }
    const float m = t.total_m[i] < t.m[i] ? t.m[i] : t.total_m[i];
    const __m256 fa = ExpAvx2(_mm256_set1_ps(t.total_m[i] - m));
    const __m256 fb = ExpAvx2(_mm256_set1_ps(t.m[i] - m));
    for (int64_t d = 0; d < dim; d += 8) {
      const __m256 before = _mm256_mul_ps(_mm256_loadu_ps(total + d), fa);
      _mm256_storeu_ps(total + d, _mm256_fmadd_ps(_mm256_loadu_ps(part + d), fb, before));
    }
    t.total_m[i] = m;
    t.total_sum[i] =
        __builtin_fmaf(t.sum[i], _mm256_cvtss_f32(fb), t.total_sum[i] * _mm256_cvtss_f32(fa));
  }
}

template <class Ops, class T>
TESSERA_KERNEL_INLINE void Split(const TileState& t, int64_t split) {
  const int64_t dim = t.a.layout.head_dim;
  for (int64_t i = 0; i < t.queries; ++i) {
    t.m[i] = -std::numeric_limits<float>::infinity();
    t.sum[i] = 0;
    for (int64_t d = 0; d < dim; d += 8)
      _mm256_storeu_ps(t.part + i * dim + d, _mm256_setzero_ps());
  }
  const int64_t end = Min(t.End(t.rows - 1), split + kAttentionSplit);
  const int64_t begin = Max(t.Begin(0), split);
  for (int64_t chunk = begin / kAttentionChunk * kAttentionChunk; chunk < end;
       chunk += kAttentionChunk) {
    // Ends and begins of the rows ascend: those that see the chunk are a run.
    const int64_t row_begin = Max(0, chunk - t.start);
    int64_t row_end = t.rows;
    while (t.Begin(row_end - 1) >= chunk + kAttentionChunk) --row_end;
    const int64_t first = (Max(t.Begin(row_begin), chunk) - chunk) / kKvBlock;
    const int64_t last =
        (Min(t.End(row_end - 1), chunk + kAttentionChunk) - chunk + kKvBlock - 1) / kKvBlock;
    const ChunkKv<T> kv = Locate<T>(t, chunk, first, last);
    const ChunkKv<T> next = LocateNext(t, chunk + kAttentionChunk, kv);
    if ((row_end - row_begin) * t.a.group > kDirectQueries) {
      const ChunkKv<float> converted = Convert<Ops>(t, kv, first, last);
      Prefetch(next, dim);
      Chunk<Ops, kScaled<T>>(t, converted, converted, chunk, first, last, row_begin, row_end);
    } else {
      Chunk<Ops, kScaled<T>>(t, kv, next, chunk, first, last, row_begin, row_end);
    }
  }
}

template <class Ops, class T>
TESSERA_KERNEL_INLINE void AttendTile(const AttentionArgs& a, int64_t head, int64_t row0,
                                      int64_t rows) {
  const TileState t = MakeTile(a, head, row0, rows);
  const int64_t dim = a.layout.head_dim, end = t.End(rows - 1);
  for (int64_t split = t.Begin(0) / kAttentionSplit * kAttentionSplit; split < end;
       split += kAttentionSplit) {
    Split<Ops, T>(t, split);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t first = t.Begin(row) / kAttentionSplit * kAttentionSplit;
      if (split >= first && split < t.End(row)) MergeRow(t, row, split == first);
    }
  }
  for (int64_t i = 0; i < t.queries; ++i) {
    float* out = a.out + (row0 + i / a.group) * a.ld_out + (head * a.group + i % a.group) * dim;
    const __m256 sum = _mm256_set1_ps(t.total_sum[i]);
    for (int64_t d = 0; d < dim; d += 8) {
      _mm256_storeu_ps(out + d, _mm256_div_ps(_mm256_loadu_ps(t.total + i * dim + d), sum));
    }
  }
}

template <class Ops, class T>
TESSERA_KERNEL_INLINE void AttendAll(const AttentionArgs& a) {
  for (int64_t head = a.head_begin; head < a.head_end; ++head) {
    for (int64_t row = 0; row < a.rows; row += kAttentionRows) {
      AttendTile<Ops, T>(a, head, row, Min(kAttentionRows, a.rows - row));
    }
  }
}

template <class Ops>
TESSERA_KERNEL_INLINE void Attend(const AttentionArgs& a) {
  if (a.layout.type == KvType::kInt8) {
    AttendAll<Ops, int8_t>(a);
  } else {
    AttendAll<Ops, uint16_t>(a);
  }
}

}  // namespace
}  // namespace tessera::kernels
