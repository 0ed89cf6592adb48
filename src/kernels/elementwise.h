// SPDX-License-Identifier: Apache-2.0
//
// Row kernels: everything between the matmuls. Each row's result depends on that row only, bit for
// bit the same on every ISA (the order of operations is given; `fma` is one rounding).
//
// Reductions over a row use 32 partial sums: partial j takes elements j, j+32, ... in order; then
// v[i] = (p[i] + p[8+i]) + (p[16+i] + p[24+i]) for i in 0..7, and the sum of a vector of eight is
//   ((v0+v4) + (v2+v6)) + ((v1+v5) + (v3+v7)).
// Exp is a degree-6 polynomial after range reduction (ref/scalar.h), relative error < 2e-7, inputs
// clamped to [-87, 88]. Matrices are [rows][ld]; ranges are half-open. Any thread may call on
// disjoint rows. In-place (out == x) is allowed where it says so. No kernel traps on NaN or
// infinity; which NaN comes out is unspecified, and quantising one gives an arbitrary code in
// [-127, 127].
#pragma once

#include <cstdint>

#include "kernels/matmul.h"

namespace tessera::kernels {

/// int8 per block of 32: scale = amax / 127, code = round-to-even(x * (127 / amax)); a block whose
/// amax is below 2^-100 becomes zeros with scale 0. Writes rows [row_begin, row_end) of `out`
/// from the same rows of x. k % 32 == 0.
struct QuantiseArgs {
  const float* x = nullptr;
  int64_t ldx = 0;
  int64_t k = 0;
  int64_t row_begin = 0;
  int64_t row_end = 0;
  QuantisedRows out = {};
};
using QuantiseFn = void (*)(const QuantiseArgs&);

/// bfloat16, to nearest with ties to even; a NaN stays a quiet one. Writes rows [row_begin,
/// row_end) of `out`, whole blocks: values at or beyond k are +0. Any k >= 1.
struct RoundArgs {
  const float* x = nullptr;
  int64_t ldx = 0;
  int64_t k = 0;
  int64_t row_begin = 0;
  int64_t row_end = 0;
  BFloat16Rows out = {};
};
using RoundFn = void (*)(const RoundArgs&);

/// out = (x * r) * weight, r = 1 / sqrt(sum(x*x) / k + eps), sum by fma in the order above.
/// In place allowed. Also for q/k head norms: a head is a row (ldx = head_dim).
struct RmsNormArgs {
  const float* x = nullptr;
  int64_t ldx = 0;
  const float* weight = nullptr;  // [k]
  float eps = 0;
  int64_t k = 0;  // any k >= 1
  int64_t row_begin = 0;
  int64_t row_end = 0;
  float* out = nullptr;  // RmsNorm only
  int64_t ld_out = 0;
  QuantisedRows q = {};  // RmsNormQuantise only (k % 32 == 0): same as norm, then quantise
  BFloat16Rows b = {};   // RmsNormRound only: same as norm, then round
};
using RmsNormFn = void (*)(const RmsNormArgs&);

/// out = a + b elementwise over [rows][columns]; out may be a or b. BiasAdd: ldb = 0 (b is one
/// row). Mul is the same with a product (embedding scale: ldb = 0).
struct BinaryArgs {
  const float* a = nullptr;
  int64_t lda = 0;
  const float* b = nullptr;
  int64_t ldb = 0;
  float* out = nullptr;
  int64_t ld_out = 0;
  int64_t columns = 0;
  int64_t row_begin = 0;
  int64_t row_end = 0;
};
using BinaryFn = void (*)(const BinaryArgs&);

/// Gated activation: out = act(gate) * up.
///   silu(g) = g / (1 + exp(-g))      gelu_tanh(g) = g / (1 + exp(-2u)),
///   u = sqrt(2/pi) * (g + 0.044715 g^3)
/// `interleaved`: x holds groups g0 u0 g1 u1 ... of 8 columns each (gate and up packed
/// alternately); else gate is columns [0, columns) of x and up [columns, 2 * columns).
/// Ungated = up absent (kPlain): out = act(x). out may not alias x unless kPlain.
enum class GateLayout : uint8_t { kInterleaved, kHalves, kPlain };
struct GatedArgs {
  const float* x = nullptr;
  int64_t ldx = 0;
  float* out = nullptr;
  int64_t ld_out = 0;
  int64_t columns = 0;  // of out; % 8 == 0 when interleaved
  GateLayout layout = GateLayout::kInterleaved;
  int64_t row_begin = 0;
  int64_t row_end = 0;
};
using GatedFn = void (*)(const GatedArgs&);

/// Rotary embedding in place, half style: for each head, i < rotary / 2, with (c, s) of the row's
/// position: x[i] = fma(a, c, -(b * s)), x[i + rotary/2] = fma(b, c, a * s), a = x[i],
/// b = x[i + rotary/2]. The table is made by the caller in double.
struct RopeArgs {
  float* x = nullptr;  // [rows][ldx], heads side by side from column 0
  int64_t ldx = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t rotary = 0;                  // even, <= head_dim
  const float* table = nullptr;        // [positions][rotary / 2][2]: cos, sin
  const int32_t* positions = nullptr;  // [rows]
  int64_t row_begin = 0;
  int64_t row_end = 0;
};
using RopeFn = void (*)(const RopeArgs&);

/// f16 = round-to-nearest-even(x); overflow becomes infinity.
using FloatToHalfFn = void (*)(const float* x, uint16_t* out, int64_t count);

}  // namespace tessera::kernels
