// SPDX-License-Identifier: Apache-2.0
//
// BF16 weights times bfloat16 activations, over one vector type V: lane = weight row, one chain a
// lane in the order of matmul.h. A pair of inputs is V::kSteps steps: one dot product, or the odd
// input's fused multiply-add and then the even one's.
//   Few rows: weights from the packed groups straight to registers, each read once.
//   More: panels of V::kPanel inputs of V::kVectors vectors are brought into the form of the steps
//   (in the first cache) and used for all rows of the tile, V::kRows at a time; between panels the
//   sums rest in memory, which changes no bit. The next panel is fetched meanwhile.
//
// V brings: Float (a vector of float32), Pairs (a pair of inputs of every lane), kGroups a vector,
// and the operations used below.
#pragma once

#include <immintrin.h>

#include <type_traits>

#include "kernels/matmul.h"
#include "kernels/pack.h"
#include "kernels/x86/vec_avx2.h"

namespace tessera::kernels {
namespace {

/// Subnormals count as zero while this lives: DAZ and FTZ of this thread. The arithmetic belongs
/// into a function of its own that is not inlined: nothing else keeps it from moving across.
class FlushSubnormals {
 public:
  __attribute__((always_inline)) FlushSubnormals() : saved_(_mm_getcsr()) {
    _mm_setcsr(saved_ | 0x8040);
  }
  __attribute__((always_inline)) ~FlushSubnormals() { _mm_setcsr(saved_); }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  unsigned saved_;
};

inline constexpr int64_t kPairBytes = kGroupRows * 4;  // A pair of inputs of one group.

/// V::kGroups groups that lie side by side in the result. Where the last is missing, the one before
/// is read again and not stored.
struct Lanes {
  const std::byte* first;
  const std::byte* second;
  int64_t column;
  int64_t columns;
};

template <class V>
TESSERA_KERNEL_INLINE Lanes LanesAt(const MatmulArgs& a, int64_t group_bytes, int64_t group) {
  const int64_t groups = Min(V::kGroups, a.group_end - group);
  const std::byte* first = a.weights + group * group_bytes;
  return {first, first + (groups - 1) * group_bytes, group * kGroupRows,
          Min(groups * kGroupRows, a.n - group * kGroupRows)};
}

/// Writes a segment's sum, or adds it to those before.
template <class V>
TESSERA_KERNEL_INLINE void Finish(const MatmulArgs& a, const Lanes& lanes, int64_t m, bool first,
                                  typename V::Float sum) {
  float* out = a.out + m * a.ld_out + lanes.column;
  if (!first) sum = V::Add(V::LoadPart(out, lanes.columns), sum);
  V::StorePart(out, sum, lanes.columns);
}

/// The same number, but the compiler cannot know: what lies there is loaded again. Kept for the
/// second step, the operands would displace sums from registers.
template <class T>
TESSERA_KERNEL_INLINE T Again(T place) {
  __asm__("" : "+r"(place));
  return place;
}

/// Step `i` of the pair at byte `at` of P vectors, for R rows.
template <class V, int i, int R, int P>
TESSERA_KERNEL_INLINE void AddPair(const Lanes* lanes, int64_t at, const uint16_t* x,
                                   typename V::Float (&sum)[R][P]) {
  typename V::Float w[P];
  TESSERA_UNROLL
  for (int p = 0; p < P; ++p) w[p] = V::template Widen<i>(V::LoadPairs(lanes[p], at));
  TESSERA_UNROLL
  for (int r = 0; r < R; ++r) {
    const typename V::Float value = V::template Widen<i>(V::BroadcastPair(x + r * kBlock));
    TESSERA_UNROLL
    for (int p = 0; p < P; ++p) {
      typename V::Float s = V::Step(w[p], value, sum[r][p]);
      if constexpr (V::kSteps == 2) V::Pin(s);
      sum[r][p] = s;
    }
  }
}

/// Rows [m, m + R) times P vectors of weights, sums in registers.
template <class V, int R, int P>
TESSERA_KERNEL_INLINE void FewRows(const MatmulArgs& a, int64_t group_bytes, int64_t group,
                                   int64_t m) {
  const int64_t ahead = PrefetchDistance(group_bytes, P * V::kGroups);
  Lanes lanes[P];
  TESSERA_UNROLL
  for (int p = 0; p < P; ++p) lanes[p] = LanesAt<V>(a, group_bytes, group + p * V::kGroups);
  const int64_t segment = a.k / a.segments;
  for (int64_t begin = 0; begin < a.k; begin += segment) {
    typename V::Float sum[R][P];
    TESSERA_UNROLL
    for (int i = 0; i < R * P; ++i) sum[i / P][i % P] = V::Zero();
    for (int64_t k0 = begin; k0 < begin + segment; k0 += kBlock) {
      const uint16_t* x = a.b.values + (k0 / kBlock * a.b.rows + m) * kBlock;
      const int64_t pairs = (Min(kBlock, begin + segment - k0) + 1) / 2;
      for (int64_t t = 0; t < pairs; ++t) {
        const int64_t at = (k0 / 2 + t) * kPairBytes;
        if (at % 64 == 0) {
          TESSERA_UNROLL
          for (int p = 0; p < P; ++p) V::Prefetch(lanes[p], at + ahead);
        }
        AddPair<V, 0, R, P>(lanes, at, x + 2 * t, sum);
        if constexpr (V::kSteps == 2) AddPair<V, 1, R, P>(lanes, Again(at), Again(x + 2 * t), sum);
      }
    }
    TESSERA_UNROLL
    for (int i = 0; i < R * P; ++i)
      Finish<V>(a, lanes[i % P], m + i / P, begin == 0, sum[i / P][i % P]);
  }
}

/// All groups of the call. With few sums in flight more weights are read side by side.
template <class V, int R>
TESSERA_KERNEL_INLINE void FewRowsAllGroups(const MatmulArgs& a, int64_t group_bytes, int64_t m) {
  constexpr int kVectors = R <= 2 ? V::kFewVectors : V::kVectors;
  int64_t g = a.group_begin;
  for (; g + kVectors * V::kGroups <= a.group_end; g += kVectors * V::kGroups)
    FewRows<V, R, kVectors>(a, group_bytes, g, m);
  for (; g < a.group_end; g += V::kGroups) FewRows<V, R, 1>(a, group_bytes, g, m);
}

/// `run(R)` with R as a constant, for rows = 1 .. V::kRows.
template <class V, int R = 1, class F>
TESSERA_KERNEL_INLINE void WithRows(int64_t rows, const F& run) {
  if constexpr (R < V::kRows) {
    if (rows != R) return WithRows<V, R + 1>(rows, run);
  }
  run(std::integral_constant<int, R>{});
}

/// Cuts `rows` into near-equal runs of at most V::kRows: run(constant R, first row).
template <class V, class F>
TESSERA_KERNEL_INLINE void ForRuns(int64_t rows, const F& run) {
  const int64_t runs = (rows + V::kRows - 1) / V::kRows;
  for (int64_t i = 0, m = 0; i < runs; ++i) {
    const int64_t count = (rows - m + runs - i - 1) / (runs - i);
    WithRows<V>(count, [&](auto constant) { run(constant, m); });
    m += count;
  }
}

/// Asks for the weights of the panel after this one, a few lines at a time: many at once would keep
/// the activations waiting.
struct Fetcher {
  const std::byte* from;  // The first group's line; the others lie group_bytes apart.
  int64_t group_bytes;
  int64_t groups;
  int64_t lines;  // of each group, still to be asked for
  int64_t share;  // lines a block of inputs

  TESSERA_KERNEL_INLINE void Next(Fetcher& f) {
    for (int64_t i = 0; i < f.share && f.lines > 0; ++i, --f.lines, f.from += 64)
      for (int64_t g = 0; g < f.groups; ++g)
        _mm_prefetch(reinterpret_cast<const char*>(f.from + g * f.group_bytes), _MM_HINT_T0);
  }
};

/// R rows times `pairs` pairs of a panel of P vectors, sums at acc [R][P]; x as in TileRows.
template <class V, int R, int P>
TESSERA_KERNEL_INLINE void AddPanel(const float* panel, int64_t pairs, const std::byte* x,
                                    int64_t block_bytes, Fetcher& fetcher, float* acc) {
  constexpr int64_t kStepPairs = kBlock / 2;
  constexpr int64_t kRowBytes = kStepPairs * V::kSteps * 4;
  typename V::Float sum[R][P];
  TESSERA_UNROLL
  for (int i = 0; i < R * P; ++i) sum[i / P][i % P] = V::Load(acc + i * V::kLanes);
  for (int64_t t0 = 0; t0 < pairs; t0 += kStepPairs, x += block_bytes) {
    const int64_t steps = Min(kStepPairs, pairs - t0) * V::kSteps;
    Fetcher::Next(fetcher);
    if constexpr (V::kSteps == 1) {  // The next block of the row; widened ones are near.
      TESSERA_UNROLL
      for (int r = 0; r < R; ++r)
        _mm_prefetch(reinterpret_cast<const char*>(x + block_bytes + r * kRowBytes), _MM_HINT_T0);
    }
    for (int64_t i = 0; i < steps; ++i, panel += P * V::kLanes) {
      typename V::Float w[P];
      TESSERA_UNROLL
      for (int p = 0; p < P; ++p) w[p] = V::Load(panel + p * V::kLanes);
      TESSERA_UNROLL
      for (int r = 0; r < R; ++r) {
        const typename V::Float value = V::Broadcast(x + r * kRowBytes + i * 4);
        TESSERA_UNROLL
        for (int p = 0; p < P; ++p) sum[r][p] = V::Step(w[p], value, sum[r][p]);
      }
    }
  }
  TESSERA_UNROLL
  for (int i = 0; i < R * P; ++i) V::Store(acc + i * V::kLanes, sum[i / P][i % P]);
}

/// Brings `pairs` pairs of P vectors from byte `at` of their groups into the form of the steps.
template <class V, int P>
TESSERA_KERNEL_INLINE void FillPanel(const Lanes* lanes, int64_t at, int64_t pairs, float* panel) {
  for (int64_t t = 0; t < pairs; ++t, at += kPairBytes) {
    TESSERA_UNROLL
    for (int p = 0; p < P; ++p) {
      const typename V::Pairs pairs_of = V::LoadPairs(lanes[p], at);
      V::Store(panel + p * V::kLanes, V::template Widen<0>(pairs_of));
      if constexpr (V::kSteps == 2)
        V::Store(panel + (P + p) * V::kLanes, V::template Widen<1>(pairs_of));
    }
    panel += V::kSteps * P * V::kLanes;
  }
}

/// Activations of a tile of rows, inputs of one panel, in the form of the steps.
struct TileRows {
  int64_t rows;
  const std::byte* x;   // [blocks of 32 inputs] by block_bytes, [rows][16 pairs x steps x 4 bytes]
  int64_t block_bytes;  // of all rows
  int64_t group_bytes;  // of the weights
};

/// Inputs [k0, k0 + count) of P vectors for all rows of the tile; `next`: where in the groups the
/// weights lie that come after.
template <class V, int P>
TESSERA_KERNEL_INLINE void AddWeights(const Lanes* lanes, int64_t k0, int64_t count, int64_t next,
                                      const TileRows& tile, float* acc) {
  alignas(64) float panel[V::kPanel / 2 * V::kSteps * P * V::kLanes];
  const int64_t pairs = (count + 1) / 2;
  FillPanel<V, P>(lanes, k0 / 2 * kPairBytes, pairs, panel);
  const int64_t lines = pairs * kPairBytes / 64;
  const int64_t blocks = (count + kBlock - 1) / kBlock * ((tile.rows + V::kRows - 1) / V::kRows);
  Fetcher fetcher = {lanes[0].first + next, tile.group_bytes, P * V::kGroups, lines,
                     (lines + blocks - 1) / blocks};
  ForRuns<V>(tile.rows, [&](auto constant, int64_t m) {
    AddPanel<V, decltype(constant)::value, P>(panel, pairs, tile.x + m * kBlock * V::kSteps * 2,
                                              tile.block_bytes, fetcher, acc + m * P * V::kLanes);
  });
}

/// The tile's activations of inputs [k0, k0 + count): where they are when a step takes pairs, else
/// widened into `buffer`.
template <class V>
TESSERA_KERNEL_INLINE TileRows PrepareRows(const MatmulArgs& a, int64_t group_bytes, int64_t m0,
                                           int64_t rows, int64_t k0, int64_t count, float* buffer) {
  const uint16_t* x = a.b.values + (k0 / kBlock * a.b.rows + m0) * kBlock;
  if constexpr (V::kSteps == 1) {
    (void)count, (void)buffer;
    return {rows, reinterpret_cast<const std::byte*>(x), a.b.rows * kBlock * 2, group_bytes};
  } else {
    for (int64_t b = 0; b * kBlock < count; ++b)
      for (int64_t m = 0; m < rows; ++m)
        V::WidenBlock(x + (b * a.b.rows + m) * kBlock, buffer + (b * rows + m) * kBlock);
    return {rows, reinterpret_cast<const std::byte*>(buffer), rows * kBlock * 4, group_bytes};
  }
}

/// Rows [m0, m0 + rows) of the vectors from `group` on that share the activations' preparation.
template <class V>
TESSERA_KERNEL_INLINE void TileOf(const MatmulArgs& a, int64_t group_bytes, int64_t group,
                                  int64_t m0, int64_t rows) {
  constexpr int P = V::kVectors;
  alignas(64) float acc[V::kTileVectors * V::kTileRows * V::kLanes];
  alignas(64) float buffer[V::kSteps == 1 ? 1 : V::kTileRows * V::kPanel];
  Lanes lanes[V::kTileVectors];
  int64_t count = 0;
  for (; count < V::kTileVectors && group < a.group_end; group += V::kGroups)
    lanes[count++] = LanesAt<V>(a, group_bytes, group);
  const int64_t stride = rows * V::kLanes;  // Sums of one vector.
  const int64_t segment = a.k / a.segments;
  for (int64_t begin = 0; begin < a.k; begin += segment) {
    for (int64_t i = 0; i < count * rows; ++i) V::Store(acc + i * V::kLanes, V::Zero());
    for (int64_t k0 = begin; k0 < begin + segment; k0 += V::kPanel) {
      const int64_t inputs = Min(V::kPanel, begin + segment - k0);
      const int64_t next = k0 + inputs < a.k ? (k0 + inputs) / 2 * kPairBytes
                                             : V::kTileVectors * V::kGroups * group_bytes;
      const TileRows tile = PrepareRows<V>(a, group_bytes, m0, rows, k0, inputs, buffer);
      int64_t v = 0;
      for (; v + P <= count; v += P)
        AddWeights<V, P>(lanes + v, k0, inputs, next, tile, acc + v * stride);
      for (; v < count; ++v) AddWeights<V, 1>(lanes + v, k0, inputs, next, tile, acc + v * stride);
    }
    // Sums lie as [P vectors together][rows][P], what is left over as [rows].
    const int64_t together = count / P * P;
    for (int64_t v = 0; v < count; ++v)
      for (int64_t m = 0; m < rows; ++m) {
        const float* sum = v < together ? acc + v / P * P * stride + (m * P + v % P) * V::kLanes
                                        : acc + v * stride + m * V::kLanes;
        Finish<V>(a, lanes[v], m0 + m, begin == 0, V::Load(sum));
      }
  }
}

template <class V>
__attribute__((noinline)) void RunBFloat16(const MatmulArgs& a) noexcept {
  const int64_t group_bytes = GroupBytes(DType::kBF16, a.k);
  if (a.rows < V::kFewRows) {
    ForRuns<V>(a.rows, [&](auto constant, int64_t m) {
      FewRowsAllGroups<V, decltype(constant)::value>(a, group_bytes, m);
    });
    return;
  }
  const int64_t tiles = (a.rows + V::kTileRows - 1) / V::kTileRows;
  for (int64_t i = 0, m0 = 0; i < tiles; ++i) {
    const int64_t rows = (a.rows - m0 + tiles - i - 1) / (tiles - i);
    for (int64_t g = a.group_begin; g < a.group_end; g += V::kTileVectors * V::kGroups)
      TileOf<V>(a, group_bytes, g, m0, rows);
    m0 += rows;
  }
}

}  // namespace
}  // namespace tessera::kernels
