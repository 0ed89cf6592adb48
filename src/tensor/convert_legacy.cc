// SPDX-License-Identifier: Apache-2.0
//
// Blocks of 32 with one f16 scale d, in the "1" forms also an f16 minimum m: value = d * q (+ m).
// 4-bit quants: byte j holds element j in its low and element j + 16 in its high nibble. Q5 adds
// the fifth bits as one 32-bit word, bit i for element i.
#include "tensor/convert.h"
#include "tensor/convert_blocks.h"

namespace tessera::tensor {
namespace {

constexpr int kHalf = 16;

float Scale(const uint8_t* block) {
  return HalfToFloat(Load<uint16_t>(block));
}

void Q4_0(const uint8_t* block, float* out) {
  const float d = Scale(block);
  const uint8_t* quants = block + 2;
  for (int j = 0; j < kHalf; ++j) {
    out[j] = d * static_cast<float>((quants[j] & 0xf) - 8);
    out[j + kHalf] = d * static_cast<float>((quants[j] >> 4) - 8);
  }
}

void Q4_1(const uint8_t* block, float* out) {
  const float d = Scale(block);
  const float m = Scale(block + 2);
  const uint8_t* quants = block + 4;
  for (int j = 0; j < kHalf; ++j) {
    out[j] = d * static_cast<float>(quants[j] & 0xf) + m;
    out[j + kHalf] = d * static_cast<float>(quants[j] >> 4) + m;
  }
}

int FifthBit(uint32_t high, int element) {
  return static_cast<int>((high >> element) & 1) << 4;
}

void Q5_0(const uint8_t* block, float* out) {
  const float d = Scale(block);
  const auto high = Load<uint32_t>(block + 2);
  const uint8_t* quants = block + 6;
  for (int j = 0; j < kHalf; ++j) {
    out[j] = d * static_cast<float>(((quants[j] & 0xf) | FifthBit(high, j)) - 16);
    out[j + kHalf] = d * static_cast<float>(((quants[j] >> 4) | FifthBit(high, j + kHalf)) - 16);
  }
}

void Q5_1(const uint8_t* block, float* out) {
  const float d = Scale(block);
  const float m = Scale(block + 2);
  const auto high = Load<uint32_t>(block + 4);
  const uint8_t* quants = block + 8;
  for (int j = 0; j < kHalf; ++j) {
    out[j] = d * static_cast<float>((quants[j] & 0xf) | FifthBit(high, j)) + m;
    out[j + kHalf] = d * static_cast<float>((quants[j] >> 4) | FifthBit(high, j + kHalf)) + m;
  }
}

void Q8_0(const uint8_t* block, float* out) {
  const float d = Scale(block);
  for (int j = 0; j < 32; ++j) out[j] = static_cast<float>(static_cast<int8_t>(block[2 + j])) * d;
}

}  // namespace

BlockDecoder FindLegacyDecoder(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
      return Q4_0;
    case DType::kQ4_1:
      return Q4_1;
    case DType::kQ5_0:
      return Q5_0;
    case DType::kQ5_1:
      return Q5_1;
    case DType::kQ8_0:
      return Q8_0;
    default:
      return nullptr;
  }
}

}  // namespace tessera::tensor
