// SPDX-License-Identifier: Apache-2.0
//
// Kernels over a row of logits, for what chooses the next token: greatest logit and softmax mass of
// every block of 32. From these a sampler knows which blocks to look into; the rest of a vocabulary
// of 100,000 and more is not read again. 32 is also the number of tokens in a word of a token mask.
//
// Bit for bit the same on every ISA, like all kernels. Any thread may call.
#pragma once

#include <cstdint>

namespace tessera::kernels {

inline constexpr int64_t kLogitBlock = 32;

constexpr int64_t LogitBlocks(int64_t count) {
  return (count + kLogitBlock - 1) / kLogitBlock;
}

/// out[b] = the greatest of x[32 b .. 32 b + 31], of fewer at the end; NaN when one of them is. Of
/// two zeros +0 is greater.
using BlockMaxFn = void (*)(const float* x, int64_t count, float* out);

/// mass[b] = sum over block b of e((double(x[i]) - max) * scale), with
///   e(z) = 2^n p(r): z below -708 counts as -708; n = z * log2(e) rounded to even;
///          r = fma(n, -kLn2Low, fma(n, -kLn2High, z)); p the Taylor polynomial of degree 13 of exp
///          by Horner's rule in fma. Relative error below 1e-15.
///   sum: v[i] = (e[i] + e[8+i]) + (e[16+i] + e[24+i]), i in 0..7, then
///        ((v0+v4) + (v2+v6)) + ((v1+v5) + (v3+v7)); places beyond `count` count as z = -708.
/// A block whose maximum lies `cut` or more below `max` in units of 1 / scale, or is -infinity, has
/// mass 0 and is not read. Requires finite `max` >= all x (NaN gives arbitrary masses) and scale >
/// 0.
struct SoftmaxMassArgs {
  const float* x = nullptr;
  const float* block_max = nullptr;  // [LogitBlocks(count)], of these x
  int64_t count = 0;
  double max = 0;
  double scale = 1;        // 1 / temperature
  double cut = 0;          // > 0
  double* mass = nullptr;  // [LogitBlocks(count)]
};
using SoftmaxMassFn = void (*)(const SoftmaxMassArgs&);

/// log2(e), and ln 2 in two parts, the upper with 11 trailing zero bits: n * kLn2High is exact.
namespace softmax {
inline constexpr double kLowest = -708.0;
inline constexpr double kLog2E = 1.4426950408889634;
inline constexpr double kLn2High = 0x1.62e42fefa3800p-1;
inline constexpr double kLn2Low = 0x1.ef35793c76730p-45;
/// 1/13! ... 1/2!, then 1, 1. Not inline: an object for a CPU shares no symbol with the others.
constexpr double kTaylor[] = {1.0 / 6227020800,
                              1.0 / 479001600,
                              1.0 / 39916800,
                              1.0 / 3628800,
                              1.0 / 362880,
                              1.0 / 40320,
                              1.0 / 5040,
                              1.0 / 720,
                              1.0 / 120,
                              1.0 / 24,
                              1.0 / 6,
                              0.5,
                              1.0,
                              1.0};
}  // namespace softmax

}  // namespace tessera::kernels
