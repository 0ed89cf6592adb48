// SPDX-License-Identifier: Apache-2.0
//
// K-quants: super-blocks of 256 with f16 super-scales and small integer scales per group of 16 or
// 32 elements. Where a byte holds several quants, consecutive elements lie in consecutive bytes and
// the next run of 32 elements in the next higher bits of the same bytes.
#include <array>

#include "tensor/convert.h"
#include "tensor/convert_blocks.h"

namespace tessera::tensor {
namespace {

constexpr int kSuper = 256;

float Scale(const uint8_t* block) {
  return HalfToFloat(Load<uint16_t>(block));
}

// The 2-bit code of element i in 64 bytes: runs of 128 elements share 32 bytes.
int TwoBits(const uint8_t* bytes, int i) {
  return (bytes[i / 128 * 32 + i % 32] >> (2 * (i % 128 / 32))) & 3;
}

// The nibble of element i in 128 bytes: runs of 64 elements share 32 bytes.
int Nibble(const uint8_t* bytes, int i) {
  return (bytes[i / 64 * 32 + i % 32] >> (4 * (i % 64 / 32))) & 0xf;
}

// Bit of element i in 32 bytes: run i / 32 of 32 elements uses that bit of every byte.
int OneBit(const uint8_t* bytes, int i) {
  return (bytes[i % 32] >> (i / 32)) & 1;
}

// scales[16] (low nibble scale, high nibble minimum), quants[64], d, dmin.
void Q2_K(const uint8_t* block, float* out) {
  const uint8_t* scales = block;
  const uint8_t* quants = block + 16;
  const float d = Scale(block + 80);
  const float dmin = Scale(block + 82);
  for (int i = 0; i < kSuper; ++i) {
    const float scale = d * static_cast<float>(scales[i / 16] & 0xf);
    const float minimum = dmin * static_cast<float>(scales[i / 16] >> 4);
    out[i] = scale * static_cast<float>(TwoBits(quants, i)) - minimum;
  }
}

// high bits[32], quants[64], scales[12], d. Scale g: 4 low bits in byte g % 8 (nibble g / 8), 2
// high bits in byte 8 + g % 4 (at 2 * (g / 4)), offset 32. A clear high bit subtracts 4.
void Q3_K(const uint8_t* block, float* out) {
  const uint8_t* high = block;
  const uint8_t* quants = block + 32;
  const uint8_t* packed = block + 96;
  const float d = Scale(block + 108);
  for (int i = 0; i < kSuper; ++i) {
    const int g = i / 16;
    const int low_bits = (packed[g % 8] >> (4 * (g / 8))) & 0xf;
    const int high_bits = (packed[8 + g % 4] >> (2 * (g / 4))) & 3;
    const float scale = d * static_cast<float>((low_bits | high_bits << 4) - 32);
    out[i] = scale * static_cast<float>(TwoBits(quants, i) - (OneBit(high, i) != 0 ? 0 : 4));
  }
}

struct ScaleAndMinimum {
  int scale;
  int minimum;
};

// Eight 6-bit pairs in 12 bytes: groups 0 to 3 in bytes g and g + 4; groups 4 to 7 have their low
// nibbles in byte g + 4 and their two high bits on top of bytes g - 4 and g.
ScaleAndMinimum SixBitPair(const uint8_t* packed, int g) {
  if (g < 4) return {packed[g] & 0x3f, packed[g + 4] & 0x3f};
  return {(packed[g + 4] & 0xf) | (packed[g - 4] >> 6 << 4),
          (packed[g + 4] >> 4) | (packed[g] >> 6 << 4)};
}

// d, dmin, pairs[12], then Q5's high bits[32], quants[128].
template <bool kHasHighBits>
void Q4or5_K(const uint8_t* block, float* out) {
  const float d = Scale(block);
  const float dmin = Scale(block + 2);
  const uint8_t* packed = block + 4;
  const uint8_t* high = block + 16;
  const uint8_t* quants = block + (kHasHighBits ? 48 : 16);
  for (int i = 0; i < kSuper; ++i) {
    const ScaleAndMinimum pair = SixBitPair(packed, i / 32);
    int quant = Nibble(quants, i);
    if constexpr (kHasHighBits) quant |= OneBit(high, i) << 4;
    const float scale = d * static_cast<float>(pair.scale);
    const float minimum = dmin * static_cast<float>(pair.minimum);
    out[i] = scale * static_cast<float>(quant) - minimum;
  }
}

// low nibbles[128] (runs of 128 elements share 64 bytes), high 2 bits[64], int8 scales[16], d.
void Q6_K(const uint8_t* block, float* out) {
  const uint8_t* low = block;
  const uint8_t* high = block + 128;
  const uint8_t* scales = block + 192;
  const float d = Scale(block + 208);
  for (int i = 0; i < kSuper; ++i) {
    const int nibble = (low[i / 128 * 64 + i % 64] >> (4 * (i % 128 / 64))) & 0xf;
    const int quant = (nibble | TwoBits(high, i) << 4) - 32;
    const float scale = d * static_cast<float>(static_cast<int8_t>(scales[i / 16]));
    out[i] = scale * static_cast<float>(quant);
  }
}

}  // namespace

BlockDecoder FindKQuantDecoder(DType dtype) {
  switch (dtype) {
    case DType::kQ2_K:
      return Q2_K;
    case DType::kQ3_K:
      return Q3_K;
    case DType::kQ4_K:
      return Q4or5_K<false>;
    case DType::kQ5_K:
      return Q4or5_K<true>;
    case DType::kQ6_K:
      return Q6_K;
    default:
      return nullptr;
  }
}

}  // namespace tessera::tensor
