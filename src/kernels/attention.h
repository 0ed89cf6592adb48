// SPDX-License-Identifier: Apache-2.0
//
// Attention over a paged KV cache in f16, or in int8 with one float32 scale a position and head.
//
// A page holds `page_tokens` positions (a multiple of 16) of all layers, so copying a page is one
// memcpy. Per layer and KV head: K as [block of 16 positions][head_dim][16] (lanes are positions:
// no horizontal sums), then V as [position][head_dim], then for int8 the float32 scales of K and
// those of V, [position] each. Position p of a sequence is slot p % page_tokens of its page
// p / page_tokens.
//
// int8, for each of K and V: amax = max |x[d]|; scale = amax / 127; code[d] = x[d] * (127 / amax),
// rounded to nearest, ties to even; all zero below kQuantiseMin, -127 for NaN, as in matmul.h.
//
// Determinism: per query row and head, with positions in ascending order,
//   score[p] = (chain over d from +0: s = fma(q[d], k[p][d], s)) * scale
//     int8: k[p][d] is the code, and the chain is multiplied by the K scale of p before `scale`.
//   softcap c > 0:  score = c * tanh(score / c)   (tanh by the Exp of elementwise.h)
//   Chunks of 64 positions from 0: m' = max(m, chunk's scores); f = exp(m - m');
//     e[p] = exp(score[p] - m'); S = fma(S, f, sum of e) (eight partials: lane p % 8 in order, then
//     the vector sum of elementwise.h); o[d] = o[d] * f, then o[d] = fma(e[p], v[p][d], o[d]).
//     int8: v[p][d] is the code, and e[p] * (V scale of p) takes the place of e[p] in o, not in S.
//   Splits of kAttentionSplit positions from 0 start afresh and are merged in order: M = max,
//     fa = exp(m_a - M), fb = exp(m_b - M), S = fma(S_b, fb, S_a * fa), o likewise.
//   out[d] = o[d] / S.
// Only positions in [max(0, p - window + 1), p] are read for V and counted; slots beyond may hold
// anything. So a row's result does not depend on chunking, on the rows beside it or on page ids.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::kernels {

inline constexpr int64_t kKvBlock = 16;          // Positions of one K block.
inline constexpr int64_t kAttentionChunk = 64;   // Positions of one online-softmax step.
inline constexpr int64_t kAttentionSplit = 512;  // Positions after which the softmax restarts.
inline constexpr int64_t kMaxHeadDim = 256;

enum class KvType : uint8_t { kF16, kInt8 };

/// Where things are in a page, in bytes from its start. (Forced inline: files for different ISAs
/// must not share a symbol.)
struct KvLayout {
  int64_t layers = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;     // % 8 == 0, <= kMaxHeadDim
  int64_t page_tokens = 0;  // % 16 == 0
  KvType type = KvType::kF16;

  [[gnu::always_inline]] constexpr int64_t ElementBytes() const {
    return type == KvType::kInt8 ? 1 : 2;
  }
  /// All of K, or all of V, of a layer's head in a page.
  [[gnu::always_inline]] constexpr int64_t PlaneBytes() const {
    return page_tokens * head_dim * ElementBytes();
  }
  /// Its scales.
  [[gnu::always_inline]] constexpr int64_t ScaleBytes() const {
    return type == KvType::kInt8 ? page_tokens * 4 : 0;
  }
  /// K and V of a layer's head in a page; a multiple of 64.
  [[gnu::always_inline]] constexpr int64_t HeadBytes() const {
    return 2 * (PlaneBytes() + ScaleBytes());
  }
  [[gnu::always_inline]] constexpr int64_t PageBytes() const {
    return layers * kv_heads * HeadBytes();
  }
  [[gnu::always_inline]] constexpr int64_t KPlane(int64_t layer, int64_t head) const {
    return (layer * kv_heads + head) * HeadBytes();
  }
  [[gnu::always_inline]] constexpr int64_t VPlane(int64_t layer, int64_t head) const {
    return KPlane(layer, head) + PlaneBytes();
  }
  [[gnu::always_inline]] constexpr int64_t KElement(int64_t layer, int64_t head, int64_t slot,
                                                    int64_t dim) const {
    return KPlane(layer, head) +
           ((slot / kKvBlock) * kKvBlock * head_dim + dim * kKvBlock + slot % kKvBlock) *
               ElementBytes();
  }
  [[gnu::always_inline]] constexpr int64_t VElement(int64_t layer, int64_t head, int64_t slot,
                                                    int64_t dim) const {
    return VPlane(layer, head) + (slot * head_dim + dim) * ElementBytes();
  }
  [[gnu::always_inline]] constexpr int64_t KScale(int64_t layer, int64_t head, int64_t slot) const {
    return KPlane(layer, head) + 2 * PlaneBytes() + slot * 4;
  }
  [[gnu::always_inline]] constexpr int64_t VScale(int64_t layer, int64_t head, int64_t slot) const {
    return KScale(layer, head, slot) + ScaleBytes();
  }
};

/// Writes K and V rows (float32, rounded to the layout's type) of consecutive positions [start,
/// start + rows). k and v are [rows][ld] with the KV heads side by side from column 0. Heads
/// [head_begin, head_end) only, so that threads may share a step.
struct KvWriteArgs {
  KvLayout layout = {};
  std::byte* pool = nullptr;       // Page i starts at pool + i * layout.PageBytes(); aligned 64.
  const int32_t* pages = nullptr;  // Of the sequence: page j holds [j, j+1) * page_tokens.
  int64_t layer = 0;
  const float* k = nullptr;
  int64_t ldk = 0;
  const float* v = nullptr;
  int64_t ldv = 0;
  int64_t start = 0;
  int64_t rows = 0;
  int64_t head_begin = 0;
  int64_t head_end = 0;
};
using KvWriteFn = void (*)(const KvWriteArgs&);

/// Attention of consecutive rows (positions start .. start + rows - 1) of one sequence, for KV
/// heads [head_begin, head_end); each serves `group` query heads. The KV of all positions up to a
/// row's own must have been written. Work splits freely by rows and by heads: bits do not change.
/// Prefer runs of kAttentionRows rows.
inline constexpr int64_t kAttentionRows = 16;

struct AttentionArgs {
  KvLayout layout = {};
  const std::byte* pool = nullptr;
  const int32_t* pages = nullptr;
  int64_t layer = 0;
  const float* q = nullptr;  // [rows][ldq], query heads side by side from column 0
  int64_t ldq = 0;
  float* out = nullptr;  // [rows][ld_out], same order of heads; may be q
  int64_t ld_out = 0;
  int64_t start = 0;  // Position of row 0.
  int64_t rows = 0;
  int64_t head_begin = 0;  // KV heads
  int64_t head_end = 0;
  int64_t group = 1;  // query heads per KV head, <= kMaxGroup
  float scale = 1;
  float softcap = 0;             // 0 = none
  int64_t window = 0;            // 0 = none; else a row sees its last `window` positions
  std::byte* scratch = nullptr;  // AttentionScratchBytes(head_dim, group), aligned 64, per thread
};
using AttentionFn = void (*)(const AttentionArgs&);

/// Scratch of one call; the same for every kernel.
int64_t AttentionScratchBytes(int64_t head_dim, int64_t group);

}  // namespace tessera::kernels
