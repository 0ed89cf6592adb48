// SPDX-License-Identifier: Apache-2.0
//
// Ternary formats (TQ: -1, 0, 1 times a scale) and 4-bit floats with block scales (MXFP4 of the OCP
// microscaling specification, NVFP4 with E4M3 scales).
#include <array>
#include <bit>
#include <cmath>

#include "tensor/convert.h"
#include "tensor/convert_blocks.h"

namespace tessera::tensor {
namespace {

// E2M1 values, doubled to be integers; scales are halved in turn. The negative zero reads as zero.
constexpr std::array<float, 16> kE2M1Doubled = {0, 1,  2,  3,  4,  6,  8,  12,
                                                0, -1, -2, -3, -4, -6, -8, -12};

// Five base-3 digits sit in a byte as a fraction of 256: multiplying by 3^n modulo 256 moves digit
// n to the front, and times 3 >> 8 reads it.
float Ternary(uint8_t byte, int digit) {
  constexpr std::array<uint8_t, 5> kPower = {1, 3, 9, 27, 81};
  const auto moved = static_cast<uint8_t>(byte * kPower[static_cast<size_t>(digit)]);
  return static_cast<float>((moved * 3 >> 8) - 1);
}

// 32 bytes of five digits, 16 bytes of five, 4 bytes of four, d; digit-major inside each run.
void TQ1_0(const uint8_t* block, float* out) {
  const float d = HalfToFloat(Load<uint16_t>(block + 52));
  struct Run {
    int bytes;
    int digits;
  };
  const uint8_t* bytes = block;
  for (const Run run : {Run{32, 5}, Run{16, 5}, Run{4, 4}}) {
    for (int digit = 0; digit < run.digits; ++digit)
      for (int j = 0; j < run.bytes; ++j) *out++ = d * Ternary(bytes[j], digit);
    bytes += run.bytes;
  }
}

// quants[64]: runs of 128 elements share 32 bytes, two bits each; d.
void TQ2_0(const uint8_t* block, float* out) {
  const float d = HalfToFloat(Load<uint16_t>(block + 64));
  for (int i = 0; i < 256; ++i) {
    const int code = block[i / 128 * 32 + i % 32] >> (2 * (i % 128 / 32)) & 3;
    out[i] = d * static_cast<float>(code - 1);
  }
}

// 2^(e - 128): half of an E8M0 scale. The two smallest are float32 subnormals.
float HalfE8M0(uint8_t e) {
  return std::bit_cast<float>(e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23);
}

// e, nibbles[16] laid out as in Q4_0.
void MXFP4(const uint8_t* block, float* out) {
  const float scale = HalfE8M0(block[0]);
  for (int j = 0; j < 16; ++j) {
    out[j] = scale * kE2M1Doubled[block[1 + j] & 0xf];
    out[j + 16] = scale * kE2M1Doubled[block[1 + j] >> 4];
  }
}

// Half of an unsigned E4M3 (bias 7); the NaN code counts as zero.
float HalfUnsignedE4M3(uint8_t bits) {
  if (bits == 0x7f) return 0.0f;
  const int exponent = bits >> 3 & 0xf;
  const int mantissa = bits & 7;
  const int units = exponent == 0 ? mantissa : mantissa | 8;
  return std::ldexp(static_cast<float>(units), (exponent == 0 ? 1 : exponent) - 7 - 3 - 1);
}

// scales[4], then four groups of 16 elements in 8 bytes, low nibbles first.
void NVFP4(const uint8_t* block, float* out) {
  for (int g = 0; g < 4; ++g) {
    const float scale = HalfUnsignedE4M3(block[g]);
    const uint8_t* nibbles = block + 4 + 8 * g;
    for (int j = 0; j < 8; ++j) {
      out[16 * g + j] = scale * kE2M1Doubled[nibbles[j] & 0xf];
      out[16 * g + j + 8] = scale * kE2M1Doubled[nibbles[j] >> 4];
    }
  }
}

}  // namespace

BlockDecoder FindSmallFloatDecoder(DType dtype) {
  switch (dtype) {
    case DType::kTQ1_0:
      return TQ1_0;
    case DType::kTQ2_0:
      return TQ2_0;
    case DType::kMXFP4:
      return MXFP4;
    case DType::kNVFP4:
      return NVFP4;
    default:
      return nullptr;
  }
}

}  // namespace tessera::tensor
