// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/ref/ref.h"
#include "kernels/ref/scalar.h"

namespace tessera::kernels::ref {
namespace {

/// One block of 32: codes, scale and sums at index `at` of `out`. `x` gives element i.
template <class Element>
void QuantiseBlock(const Element& x, const QuantisedRows& out, int64_t at) {
  float amax = 0;
  for (int i = 0; i < kBlock; ++i) amax = std::max(amax, std::fabs(x(i)));
  const bool zero = !(amax >= kQuantiseMin);
  const float inverse = zero ? 0.0f : 127.0f / amax;
  int32_t halves[2] = {0, 0};
  for (int i = 0; i < kBlock; ++i) {
    const float scaled = std::nearbyintf(x(i) * inverse);
    // The comparison is false for NaN too.
    const auto code = static_cast<int8_t>(scaled >= -127 && scaled <= 127 ? scaled : -127.0f);
    out.codes[at * kBlock + i] = code;
    halves[i / 16] += code;
  }
  const float scale = zero ? 0.0f : amax / 127.0f;
  out.scales[at] = scale;
  out.sums[at] = halves[0] + halves[1];
  out.half_sums[2 * at] = static_cast<int16_t>(halves[0]);
  out.half_sums[2 * at + 1] = static_cast<int16_t>(halves[1]);
  out.scaled_sums[at] = scale * static_cast<float>(halves[0] + halves[1]);
}

/// One row of k elements; `x` gives element i.
template <class Element>
void RoundRow(const Element& x, int64_t k, const BFloat16Rows& out, int64_t m) {
  for (int64_t i = 0; i < (k + kBlock - 1) / kBlock * kBlock; ++i) {
    uint16_t* block = out.values + (i / kBlock * out.rows + m) * kBlock;
    block[i % kBlock] = i < k ? FloatToBFloat16(x(i)) : uint16_t{0};
  }
}

float RmsFactor(const float* x, int64_t k, float eps) {
  float p[32] = {};
  for (int64_t i = 0; i < k; ++i) p[i % 32] = std::fma(x[i], x[i], p[i % 32]);
  float v[8];
  for (int i = 0; i < 8; ++i) v[i] = (p[i] + p[8 + i]) + (p[16 + i] + p[24 + i]);
  return 1.0f / std::sqrt(Sum8(v) / static_cast<float>(k) + eps);
}

float Gelu(float x) {
  const float u2 = x * std::fma(kGelu3, x * x, kGelu1);
  return x / (1.0f + Exp(-u2));
}

float Silu(float x) {
  return x / (1.0f + Exp(-x));
}

template <float (*activation)(float)>
void Gate(const GatedArgs& a) {
  for (int64_t m = a.row_begin; m < a.row_end; ++m) {
    const float* x = a.x + m * a.ldx;
    float* out = a.out + m * a.ld_out;
    for (int64_t i = 0; i < a.columns; ++i) {
      switch (a.layout) {
        case GateLayout::kInterleaved: {
          const int64_t at = i / 8 * 16 + i % 8;
          out[i] = activation(x[at]) * x[at + 8];
          break;
        }
        case GateLayout::kHalves:
          out[i] = activation(x[i]) * x[a.columns + i];
          break;
        case GateLayout::kPlain:
          out[i] = activation(x[i]);
          break;
      }
    }
  }
}

}  // namespace

void Quantise(const QuantiseArgs& a) {
  for (int64_t m = a.row_begin; m < a.row_end; ++m) {
    for (int64_t b = 0; b < a.k / kBlock; ++b) {
      const float* x = a.x + m * a.ldx + b * kBlock;
      QuantiseBlock([x](int i) { return x[i]; }, a.out, b * a.out.rows + m);
    }
  }
}

void Round(const RoundArgs& a) {
  for (int64_t m = a.row_begin; m < a.row_end; ++m) {
    const float* x = a.x + m * a.ldx;
    RoundRow([x](int64_t i) { return x[i]; }, a.k, a.out, m);
  }
}

void RmsNorm(const RmsNormArgs& a) {
  for (int64_t m = a.row_begin; m < a.row_end; ++m) {
    const float* x = a.x + m * a.ldx;
    const float r = RmsFactor(x, a.k, a.eps);
    for (int64_t i = 0; i < a.k; ++i) a.out[m * a.ld_out + i] = (x[i] * r) * a.weight[i];
  }
}

void RmsNormQuantise(const RmsNormArgs& a) {
  for (int64_t m = a.row_begin; m < a.row_end; ++m) {
    const float r = RmsFactor(a.x + m * a.ldx, a.k, a.eps);
    for (int64_t b = 0; b < a.k / kBlock; ++b) {
      const float* x = a.x + m * a.ldx + b * kBlock;
      const float* w = a.weight + b * kBlock;
      QuantiseBlock([=](int i) { return (x[i] * r) * w[i]; }, a.q, b * a.q.rows + m);
    }
  }
}

void RmsNormRound(const RmsNormArgs& a) {
  for (int64_t m = a.row_begin; m < a.row_end; ++m) {
    const float* x = a.x + m * a.ldx;
    const float r = RmsFactor(x, a.k, a.eps);
    RoundRow([=](int64_t i) { return (x[i] * r) * a.weight[i]; }, a.k, a.b, m);
  }
}

void Add(const BinaryArgs& a) {
  for (int64_t m = a.row_begin; m < a.row_end; ++m) {
    for (int64_t i = 0; i < a.columns; ++i) {
      a.out[m * a.ld_out + i] = a.a[m * a.lda + i] + a.b[m * a.ldb + i];
    }
  }
}

void Mul(const BinaryArgs& a) {
  for (int64_t m = a.row_begin; m < a.row_end; ++m) {
    for (int64_t i = 0; i < a.columns; ++i) {
      a.out[m * a.ld_out + i] = a.a[m * a.lda + i] * a.b[m * a.ldb + i];
    }
  }
}

void SiluGate(const GatedArgs& a) {
  Gate<Silu>(a);
}
void GeluGate(const GatedArgs& a) {
  Gate<Gelu>(a);
}

void Rope(const RopeArgs& a) {
  const int64_t half = a.rotary / 2;
  for (int64_t m = a.row_begin; m < a.row_end; ++m) {
    const float* table = a.table + a.positions[m] * a.rotary;
    for (int64_t h = 0; h < a.heads; ++h) {
      float* x = a.x + m * a.ldx + h * a.head_dim;
      for (int64_t i = 0; i < half; ++i) {
        const float c = table[2 * i], s = table[2 * i + 1];
        const float first = x[i], second = x[i + half];
        x[i] = std::fma(first, c, -(second * s));
        x[i + half] = std::fma(second, c, first * s);
      }
    }
  }
}

void FloatToHalf(const float* x, uint16_t* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = FloatToHalf(x[i]);
}

}  // namespace tessera::kernels::ref
