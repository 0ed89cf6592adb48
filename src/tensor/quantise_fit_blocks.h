// SPDX-License-Identifier: Apache-2.0
//
// Internal to quantise_fit*.cc: a row in, blocks out: groups are laid side by side, searched
// (quantise_fit_search.h, quantise_fit_super.h) and stored. Layouts: convert_legacy.cc and
// convert_k_quants.cc.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/quantise_fit_args.h"
#include "tensor/quantise_fit_super.h"

namespace tessera::tensor {
namespace {

/// Smaller than half of every format's smallest step, 2^-24: stored as zero by all. Leaves no
/// subnormal numbers to the search.
constexpr float kNothing = 0x1p-30F;

/// Lays groups [first, first + 8) of a row side by side; lanes beyond `count` groups are zeros.
template <int N>
void Gather(const FitArgs& a, int64_t first, int64_t count, Groups<N>* g) {
  for (int lane = 0; lane < kLanes; ++lane) {
    if (lane >= count) {
      for (int i = 0; i < N; ++i) g->x[i][lane] = g->w[i][lane] = 0;
      continue;
    }
    const float* x = a.row + (first + lane) * N;
    float sum = 0;
    for (int i = 0; i < N; ++i) {
      const float magnitude = Abs(x[i]);
      g->x[i][lane] = magnitude < kNothing ? 0.0F : x[i];
      sum += magnitude;
    }
    const float mean = sum / static_cast<float>(N);
    const float* importance = a.importance == nullptr ? nullptr : a.importance + (first + lane) * N;
    for (int i = 0; i < N; ++i) {
      const float weight = mean + Abs(x[i]);
      g->w[i][lane] = importance == nullptr ? weight : weight * importance[i];
    }
  }
}

/// Codes of all lanes at their scales and minima, as they are stored.
template <class V, int N>
void Codes(const Groups<N>& g, const float* d, const float* m, float low, float high,
           int8_t (*codes)[N]) {
  alignas(32) float row[kLanes];
  for (int lane = 0; lane < kLanes; lane += kWidth<V>) {
    const V inverse = InverseOrZero(Load<V>(d + lane));
    const V minimum = Load<V>(m + lane);
    for (int i = 0; i < N; ++i) {
      Store(row, CodeOf(Load<V>(&g.x[i][lane]), inverse, minimum, low, high));
      for (int l = 0; l < kWidth<V>; ++l) codes[lane + l][i] = static_cast<int8_t>(row[l]);
    }
  }
}

/// Exact: the search leaves only values that an f16 holds.
void PutHalf(float value, uint8_t* out) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  const uint32_t sign = (bits >> 16) & 0x8000U;
  const uint32_t magnitude = bits & 0x7fffffffU;
  uint32_t half;
  if (magnitude < 0x38800000U) {  // Below 2^-14, in units of 2^-24.
    const float absolute = value < 0 ? -value : value;
    half = static_cast<uint32_t>(absolute * 0x1p24F);
  } else {
    half = (magnitude - (112U << 23)) >> 13;
  }
  half |= sign;
  out[0] = static_cast<uint8_t>(half);
  out[1] = static_cast<uint8_t>(half >> 8);
}

uint8_t Nibbles(int low, int high) {
  return static_cast<uint8_t>(low | high << 4);
}

constexpr float kNoMinimum[kLanes] = {};

/// Q8_0, Q5_0, Q4_0: one scale for 32 codes.
template <class V>
void EncodeScaled(const FitArgs& a, float low, float high, void (*put)(const int8_t*, uint8_t*),
                  int64_t block_bytes) {
  const int64_t blocks = a.columns / 32;
  Groups<32> g;
  float d[kLanes];
  int8_t codes[kLanes][32];
  for (int64_t first = 0; first < blocks; first += kLanes) {
    Gather<32>(a, first, blocks - first, &g);
    FitScales<V, 32>(g, low, high, d);
    Codes<V, 32>(g, d, kNoMinimum, low, high, codes);
    for (int lane = 0; lane < kLanes && first + lane < blocks; ++lane) {
      uint8_t* block = a.out + (first + lane) * block_bytes;
      PutHalf(d[lane], block);
      put(codes[lane], block + 2);
    }
  }
}

void PutQ8(const int8_t* codes, uint8_t* out) {
  for (int i = 0; i < 32; ++i) out[i] = static_cast<uint8_t>(codes[i]);
}
void PutQ4(const int8_t* codes, uint8_t* out) {
  for (int i = 0; i < 16; ++i) out[i] = Nibbles(codes[i] + 8, codes[i + 16] + 8);
}
/// The fifth bits first, then as Q4_0.
void PutQ5(const int8_t* codes, uint8_t* out) {
  uint32_t fifth = 0;
  for (int i = 0; i < 16; ++i) {
    const int low = codes[i] + 16, high = codes[i + 16] + 16;
    fifth |= static_cast<uint32_t>(low >> 4) << i | static_cast<uint32_t>(high >> 4) << (i + 16);
    out[4 + i] = Nibbles(low & 15, high & 15);
  }
  for (int i = 0; i < 4; ++i) out[i] = static_cast<uint8_t>(fifth >> (8 * i));
}

template <class V>
void EncodeQ4_1(const FitArgs& a) {
  const int64_t blocks = a.columns / 32;
  Groups<32> g;
  float d[kLanes], m[kLanes];
  int8_t codes[kLanes][32];
  for (int64_t first = 0; first < blocks; first += kLanes) {
    Gather<32>(a, first, blocks - first, &g);
    FitLines<V, 32>(g, 15.0F, d, m);
    Codes<V, 32>(g, d, m, 0.0F, 15.0F, codes);
    for (int lane = 0; lane < kLanes && first + lane < blocks; ++lane) {
      uint8_t* block = a.out + (first + lane) * 20;
      PutHalf(d[lane], block);
      PutHalf(m[lane], block + 2);
      for (int i = 0; i < 16; ++i) block[4 + i] = Nibbles(codes[lane][i], codes[lane][i + 16]);
    }
  }
}

template <class V>
void EncodeQ4K(const FitArgs& a) {
  Groups<32> g;
  float d[kLanes], m[kLanes];
  int8_t codes[kLanes][32];
  for (int64_t super = 0; super < a.columns / 256; ++super) {
    Gather<32>(a, super * kLanes, kLanes, &g);
    const FitQ4K fit = FitSuperQ4K<V>(g);
    uint8_t* block = a.out + super * 144;
    uint8_t* packed = block + 4;
    PutHalf(fit.d, block);
    PutHalf(fit.dmin, block + 2);
    for (int i = 0; i < 12; ++i) packed[i] = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      d[lane] = fit.scale[lane] * fit.d;
      m[lane] = -(fit.minimum[lane] * fit.dmin);
      const int sc = static_cast<int>(fit.scale[lane]), mn = static_cast<int>(fit.minimum[lane]);
      if (lane < 4) {
        packed[lane] = static_cast<uint8_t>(packed[lane] | sc);
        packed[lane + 4] = static_cast<uint8_t>(packed[lane + 4] | mn);
      } else {
        packed[lane + 4] = Nibbles(sc & 15, mn & 15);
        packed[lane - 4] = static_cast<uint8_t>(packed[lane - 4] | sc >> 4 << 6);
        packed[lane] = static_cast<uint8_t>(packed[lane] | mn >> 4 << 6);
      }
    }
    Codes<V, 32>(g, d, m, 0.0F, 15.0F, codes);
    for (int pair = 0; pair < 4; ++pair)
      for (int i = 0; i < 32; ++i)
        block[16 + pair * 32 + i] = Nibbles(codes[2 * pair][i], codes[2 * pair + 1][i]);
  }
}

void PutQ6K(const FitQ6K& fit, const int8_t (*codes)[16], uint8_t* block) {
  for (int i = 0; i < 192; ++i) block[i] = 0;
  for (int group = 0; group < 16; ++group) {
    block[192 + group] = static_cast<uint8_t>(static_cast<int>(fit.scale[group / 8][group % 8]));
    for (int j = 0; j < 16; ++j) {
      const int i = group * 16 + j;
      const int code = codes[group][j] + 32;
      uint8_t& low = block[i / 128 * 64 + i % 64];
      uint8_t& high = block[128 + i / 128 * 32 + i % 32];
      low = static_cast<uint8_t>(low | (code & 15) << (4 * (i % 128 / 64)));
      high = static_cast<uint8_t>(high | (code >> 4) << (2 * (i % 128 / 32)));
    }
  }
  PutHalf(fit.d, block + 208);
}

template <class V>
void EncodeQ6K(const FitArgs& a) {
  Groups<16> sets[2];
  float d[kLanes];
  int8_t codes[16][16];
  for (int64_t super = 0; super < a.columns / 256; ++super) {
    for (int s = 0; s < 2; ++s) Gather<16>(a, super * 16 + s * kLanes, kLanes, &sets[s]);
    const FitQ6K fit = FitSuperQ6K<V>(sets);
    for (int s = 0; s < 2; ++s) {
      for (int lane = 0; lane < kLanes; ++lane) d[lane] = fit.scale[s][lane] * fit.d;
      Codes<V, 16>(sets[s], d, kNoMinimum, -32.0F, 31.0F, codes + s * kLanes);
    }
    PutQ6K(fit, codes, a.out + super * 210);
  }
}

template <class V>
void EncodeRow(const FitArgs& a) {
  switch (a.dtype) {
    case DType::kQ8_0:
      return EncodeScaled<V>(a, -127.0F, 127.0F, PutQ8, 34);
    case DType::kQ5_0:
      return EncodeScaled<V>(a, -16.0F, 15.0F, PutQ5, 22);
    case DType::kQ4_0:
      return EncodeScaled<V>(a, -8.0F, 7.0F, PutQ4, 18);
    case DType::kQ4_1:
      return EncodeQ4_1<V>(a);
    case DType::kQ4_K:
      return EncodeQ4K<V>(a);
    case DType::kQ6_K:
      return EncodeQ6K<V>(a);
    default:
      return;  // QuantiseFit lets no other in.
  }
}

}  // namespace
}  // namespace tessera::tensor
