// SPDX-License-Identifier: Apache-2.0
//
// Matmul: out[m][i] = sum over k of weight[i][k] * x[m][k], weights packed (pack.h), activations
// int8 (quantised weights), bfloat16 (BF16 weights) or float32 (F32, F16), result float32.
//
// Determinism: out[m] depends on row m only. Every kernel of one format, for every number of rows,
// every ISA and every split of the groups between threads, gives the same bits. The order, per
// output element, is
//   total = s_0 + s_1 + ... + s_{segments-1}    (left to right, starting with s_0)
//   s_i   = chain over the inputs of segment i in ascending order, from +0:
//     F32, F16:       s = fma(w[k], x[k], s)
//     BF16:           per pair of inputs 2t, 2t+1:  s = fma(w[2t+1], x[2t+1], s)
//                                                   s = fma(w[2t], x[2t], s)
//                     an odd k ends with a pair whose second input is +0 times +0
//     quantised:      per block b of 32 inputs, with dot = sum code[k] * a[k] exact in int32
//       without minimum (Q4_0 Q5_0 Q8_0 Q6_K):  s = fma(float(dot), d * a_scale, s)
//       with minimum (Q4_1 Q5_1 Q4_K Q5_K):     s = fma(float(dot), d * a_scale, s)
//                                               s = fma(m, a_scaled_sum, s)
//     where code has its zero point removed (Q4_0: q - 8, Q5_0: q - 16), d and m are the block's
//     scales as float32 (Q4_K, Q5_K: d * sc and -(dmin * mn), each rounded to float32; Q6_K:
//     dot = sc_0 * dot_0 + sc_1 * dot_1 over the two halves, exact in int32).
// BF16 flushes: every subnormal operand and result of these operations, the sum of the segments
// included, counts as zero of its sign, a result being subnormal when it is below 2^-126 once
// rounded to 24 bits (x86: DAZ and FTZ). That, and the odd input first, is what one lane of
// vdpbf16ps does (Intel SDM, VDPBF16PS; bit for bit so on AMD Zen 5), so dot-product hardware, two
// fused multiply-adds and the reference agree. A CPU whose vdpbf16ps does otherwise never runs that
// kernel: catalog.h. Weights and activations below 2^-126 are noise beside any others. Segments are
// the parts that tensor parallelism may cut K into; tp1 with 8 segments equals tp8.
//
// Any thread may call; a call writes only the columns of its groups. Non-finite scales or
// activations give non-finite results in their own rows and never trap.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::kernels {

/// Inputs per activation block.
inline constexpr int64_t kBlock = 32;

/// Activations quantised to int8, block-major: block b of row m is at index b * rows + m.
/// Views memory that the caller owns; see QuantisedRowsBytes.
struct QuantisedRows {
  int8_t* codes = nullptr;       // [k/32][rows][32], each in [-127, 127]
  float* scales = nullptr;       // [k/32][rows]     x ~ scale * code
  float* scaled_sums = nullptr;  // [k/32][rows]     scale * float(sum)
  int32_t* sums = nullptr;       // [k/32][rows]     sum of the 32 codes
  int16_t* half_sums = nullptr;  // [k/32][rows][2]  sums of codes 0..15 and 16..31
  int64_t rows = 0;              // Row stride of all arrays: rows of the buffer.
};

/// Bytes of a buffer for `rows` rows of k inputs (k % 32 == 0); it must be aligned to 64.
constexpr int64_t QuantisedRowsBytes(int64_t rows, int64_t k) {
  const int64_t blocks = rows * (k / kBlock);
  const auto up = [](int64_t n) { return (n + 63) / 64 * 64; };
  return up(blocks * kBlock) + 4 * up(blocks * 4);
}

/// Lays the arrays out in `memory`. Use the number of rows of this step, not the maximum: rows of
/// one block lie side by side.
inline QuantisedRows MakeQuantisedRows(std::byte* memory, int64_t rows, int64_t k) {
  const int64_t blocks = rows * (k / kBlock);
  const auto up = [](int64_t n) { return (n + 63) / 64 * 64; };
  QuantisedRows q = {};
  q.rows = rows;
  q.codes = reinterpret_cast<int8_t*>(memory);
  memory += up(blocks * kBlock);
  q.scales = reinterpret_cast<float*>(memory);
  memory += up(blocks * 4);
  q.scaled_sums = reinterpret_cast<float*>(memory);
  memory += up(blocks * 4);
  q.sums = reinterpret_cast<int32_t*>(memory);
  memory += up(blocks * 4);
  q.half_sums = reinterpret_cast<int16_t*>(memory);
  return q;
}

/// Activations rounded to bfloat16 (to nearest, ties to even), block-major like QuantisedRows: the
/// 32 values of block b of row m lie at index (b * rows + m) * 32. Values at or beyond k are +0.
/// Views memory that the caller owns; see BFloat16RowsBytes.
struct BFloat16Rows {
  uint16_t* values = nullptr;  // [ceil(k/32)][rows][32]
  int64_t rows = 0;            // Row stride: rows of the buffer.
};

/// Bytes of a buffer for `rows` rows of k inputs; it must be aligned to 64.
constexpr int64_t BFloat16RowsBytes(int64_t rows, int64_t k) {
  return (k + kBlock - 1) / kBlock * rows * kBlock * 2;
}

inline BFloat16Rows MakeBFloat16Rows(std::byte* memory, int64_t rows) {
  return {reinterpret_cast<uint16_t*>(memory), rows};
}

struct MatmulArgs {
  const std::byte* weights = nullptr;  // Packed matrix, aligned to 64.
  int64_t n = 0;                       // Output rows of the matrix (not padded).
  int64_t k = 0;                       // Inputs.
  int64_t segments = 1;                // k % segments == 0; quantised, and BF16 of two and more:
                                       // (k / segments) % 32 == 0 (K-quants: % 256).
  QuantisedRows q = {};                // Activations for quantised formats, q.rows >= rows,
  BFloat16Rows b = {};                 // for BF16, b.rows >= rows,
  const float* x = nullptr;            // for F32 and F16: [rows][ldx]
  int64_t ldx = 0;
  int64_t rows = 0;         // M >= 0
  float* out = nullptr;     // [rows][ld_out]; columns 8 * group .. are written,
  int64_t ld_out = 0;       // never a column >= n.
  int64_t group_begin = 0;  // The caller's share: groups [begin, end) of
  int64_t group_end = 0;    // GroupCount(n).
};

using MatmulFn = void (*)(const MatmulArgs&);

}  // namespace tessera::kernels
