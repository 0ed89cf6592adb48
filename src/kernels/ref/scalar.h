// SPDX-License-Identifier: Apache-2.0
//
// Scalar arithmetic of the reference kernels: the definition that vector kernels reproduce bit for
// bit. Constants are shared with x86/.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/layout.h"

namespace tessera::kernels {

/// exp(x) = 2^n * p(r), n = round(x / ln 2), r = x - n ln 2 with ln 2 in two parts, p(r) = 1 + r +
/// r^2 (c2 + c3 r + ... + c6 r^4), interpolated at the Chebyshev nodes of [-ln2/2, ln2/2]
/// (truncation error 2e-8).
inline constexpr float kExpLow = -87.0f;
inline constexpr float kExpHigh = 88.0f;
inline constexpr float kLog2E = 1.44269504088896341f;
inline constexpr float kLn2High = 0x1.62e4p-1f;  // 15 bits: n * kLn2High is exact
inline constexpr float kLn2Low = 1.4286068202862268e-06f;
inline constexpr float kExpC2 = 4.9999916994e-01f;
inline constexpr float kExpC3 = 1.6666577026e-01f;
inline constexpr float kExpC4 = 4.1694197296e-02f;
inline constexpr float kExpC5 = 8.3631730745e-03f;
inline constexpr float kExpC6 = 1.2085071445e-03f;

/// gelu_tanh(x) = x * sigmoid(2u): 2u = x * (kGelu1 + kGelu3 * x^2).
inline constexpr float kGelu1 = 1.5957691216057308f;    // 2 sqrt(2 / pi)
inline constexpr float kGelu3 = 0.071354816272589960f;  // kGelu1 * 0.044715

/// Smallest amax that is quantised; below it a block is zero.
inline constexpr float kQuantiseMin = 0x1p-100f;

namespace ref {

static inline float Exp(float x) {
  x = x < kExpLow ? kExpLow : x;  // NaN passes
  x = x > kExpHigh ? kExpHigh : x;
  if (std::isnan(x)) return x;
  const float n = std::nearbyintf(x * kLog2E);
  float r = std::fma(n, -kLn2High, x);
  r = std::fma(n, -kLn2Low, r);
  float p = std::fma(kExpC6, r, kExpC5);
  p = std::fma(p, r, kExpC4);
  p = std::fma(p, r, kExpC3);
  p = std::fma(p, r, kExpC2);
  p = std::fma(p, r, 1.0f);
  p = std::fma(p, r, 1.0f);
  return std::bit_cast<float>(std::bit_cast<int32_t>(p) + (static_cast<int32_t>(n) << 23));
}

static inline float Sigmoid(float x) {
  return 1.0f / (1.0f + Exp(-x));
}

/// tanh(x) = 2 sigmoid(2x) - 1.
static inline float Tanh(float x) {
  return std::fma(2.0f, Sigmoid(x + x), -1.0f);
}

static inline float HalfToFloat(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16;
  const uint32_t exponent = (h >> 10) & 31;
  const uint32_t mantissa = h & 0x3ff;
  if (exponent == 31) {
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13) |
                                (mantissa ? 0x400000u : 0u));
  }
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

static inline uint16_t FloatToHalf(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  uint32_t a = bits & 0x7fffffff;
  if (a > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | ((a >> 13) & 0x3ff));
  if (a >= 0x47800000) return static_cast<uint16_t>(sign | 0x7c00);
  if (a < 0x38800000) {  // Below 2^-14: adding 0.5 rounds to multiples of 2^-24.
    const float shifted = std::bit_cast<float>(a) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  a += 0xc8000000u + 0xfff + ((a >> 13) & 1);  // Exponent bias 127 -> 15, round to even.
  return static_cast<uint16_t>(sign | (a >> 13));
}

static inline float BFloat16ToFloat(uint16_t b) {
  return std::bit_cast<float>(static_cast<uint32_t>(b) << 16);
}

/// Rounds to nearest, ties to even; a NaN stays one and becomes quiet.
static inline uint16_t FloatToBFloat16(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline constexpr float kMinNormal = 0x1p-126f;

/// A subnormal number as zero of its sign.
static inline float Flushed(float x) {
  return std::fabs(x) < kMinNormal ? std::copysign(0.0f, x) : x;
}

/// fma(w, x, s), subnormal operands and results flushed, for w and x that are bfloat16 numbers. A
/// result of 2^-126 sharp may have been rounded up to there only because subnormals are coarse: it
/// is rounded again to 24 bits far from them.
static inline float FlushedFma(float w, float x, float s) {
  w = Flushed(w);
  x = Flushed(x);
  s = Flushed(s);
  const float r = std::fma(w, x, s);
  if (std::fabs(r) > kMinNormal || std::isnan(r)) return r;
  // Exact in double, or the product is so far below s that it decides no rounding.
  const double sum = static_cast<double>(w) * static_cast<double>(x) + static_cast<double>(s);
  const bool tiny = std::fabs(static_cast<float>(sum * 0x1p100)) < kMinNormal * 0x1p100f;
  return tiny ? std::copysign(0.0f, r) : r;
}

/// a + b likewise. The sum of two floats below 2^-100 is exact.
static inline float FlushedSum(float a, float b) {
  return Flushed(Flushed(a) + Flushed(b));
}

static inline uint16_t LoadU16(const std::byte* p) {
  uint16_t v;
  std::memcpy(&v, p, 2);
  return v;
}

/// f16 number j of an array.
static inline float HalfAt(const std::byte* p, int64_t j) {
  return HalfToFloat(LoadU16(p + 2 * j));
}

/// Sum of a vector of eight, in the order of elementwise.h.
static inline float Sum8(const float* v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

/// Code of input t (0..31) of row j, zero point removed.
template <class F>
static inline int Code(const BlockParts& parts, int64_t j, int t) {
  if constexpr (F::kBits == 8) {
    return static_cast<int8_t>(parts.codes[(t / 4) * 32 + j * 4 + t % 4]);
  } else {
    const int64_t at = ((t % 16) / 4) * 32 + j * 4 + t % 4;
    const auto byte = static_cast<unsigned>(parts.codes[at]);
    unsigned code = t < 16 ? byte & 15 : byte >> 4;
    if constexpr (F::kBits == 5) {
      const auto high = static_cast<unsigned>(parts.high[j * 4 + t % 4]);
      code |= ((high >> (t / 4)) & 1) << 4;
    }
    return static_cast<int>(code) - F::kZero;
  }
}

/// 6-bit scale and minimum of sub-block i of row j from the 12 bytes of Q4_K and Q5_K.
static inline void ScaleMin(const std::byte* scales, int64_t j, int i, int* scale, int* min) {
  const auto u = [=](int at) { return static_cast<int>(scales[at / 4 * 32 + j * 4 + at % 4]); };
  if (i < 4) {
    *scale = u(i) & 63;
    *min = u(i + 4) & 63;
  } else {
    *scale = (u(i + 4) & 15) | ((u(i - 4) >> 6) << 4);
    *min = (u(i + 4) >> 4) | ((u(i) >> 6) << 4);
  }
}

/// Unsigned code of input t of sub-block i, row j, of a K-quant.
template <DType dtype>
static inline int SuperCode(const SuperParts& parts, int i, int64_t j, int t) {
  const int64_t at = i * 128 + ((t % 16) / 4) * 32 + j * 4 + t % 4;
  const auto byte = static_cast<unsigned>(parts.codes[at]);
  unsigned code = t < 16 ? byte & 15 : byte >> 4;
  if constexpr (dtype == DType::kQ5_K) {
    code |= ((static_cast<unsigned>(parts.high[i * 32 + j * 4 + t % 4]) >> (t / 4)) & 1) << 4;
  }
  if constexpr (dtype == DType::kQ6_K) {
    const auto two = static_cast<unsigned>(parts.high[i * 64 + (t / 16) * 32 + j * 4 + t % 4]);
    code |= ((two >> (2 * ((t % 16) / 4))) & 3) << 4;
  }
  return static_cast<int>(code);
}

}  // namespace ref
}  // namespace tessera::kernels
