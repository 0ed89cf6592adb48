// SPDX-License-Identifier: Apache-2.0
//
// IQ formats: super-blocks of 256 whose elements are vectors from a codebook (iq_codebooks.h) times
// signs times a scale. IQ4 codes single elements with a list of 16 values instead.
#include <array>
#include <bit>

#include "tensor/convert.h"
#include "tensor/convert_blocks.h"
#include "tensor/iq_codebooks.h"

namespace tessera::tensor {
namespace {

constexpr std::array<float, 3> kIq2Values = {8, 25, 43};
constexpr std::array<float, 8> kIq3XxsValues = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr std::array<float, 16> kIq4Values = {-127, -104, -83, -65, -49, -35, -22, -10,
                                              1,    13,   25,  38,  53,  69,  89,  113};
constexpr float kIq1Delta = 0.125f;

float Scale(const uint8_t* block) {
  return HalfToFloat(Load<uint16_t>(block));
}

// Seven stored signs; the eighth makes their number even.
uint8_t EvenSigns(uint32_t seven) {
  return static_cast<uint8_t>(seven | (std::popcount(seven) % 2) << 7);
}

float Sign(uint8_t signs, size_t i) {
  return (signs >> i & 1) != 0 ? -1.0f : 1.0f;
}

float* PutIq2(const Digits8& digits, float scale, uint8_t signs, float* out) {
  for (size_t i = 0; i < digits.size(); ++i)
    *out++ = scale * kIq2Values[digits[i]] * Sign(signs, i);
  return out;
}

// d; per 32 elements: four codebook bytes, then a word of four 7-bit sign sets and a 4-bit scale.
void IQ2_XXS(const uint8_t* block, float* out) {
  const auto& codebook = CodebookIQ2_XXS();
  const float d = Scale(block);
  for (int g = 0; g < 8; ++g) {
    const uint8_t* codes = block + 2 + 8 * g;
    const auto word = Load<uint32_t>(codes + 4);
    const float scale = d * (0.5f + static_cast<float>(word >> 28)) * 0.25f;
    for (int k = 0; k < 4; ++k)
      out = PutIq2(codebook[codes[k]], scale, EvenSigns(word >> (7 * k) & 0x7f), out);
  }
}

// d, words[32] (9 bits of code, 7 of signs), scales[8] (one nibble per 16 elements).
void IQ2_XS(const uint8_t* block, float* out) {
  const auto& codebook = CodebookIQ2_XS();
  const float d = Scale(block);
  const uint8_t* scales = block + 66;
  for (int k = 0; k < 32; ++k) {
    const auto word = Load<uint16_t>(block + 2 + 2 * k);
    const int nibble = scales[k / 4] >> (4 * (k / 2 % 2)) & 0xf;
    const float scale = d * (0.5f + static_cast<float>(nibble)) * 0.25f;
    out = PutIq2(codebook[word & 511], scale, EvenSigns(word >> 9), out);
  }
}

// d, codes[32], signs[32], code high bits[8] (two per code), scales[8].
void IQ2_S(const uint8_t* block, float* out) {
  const auto& codebook = CodebookIQ2_S();
  const float d = Scale(block);
  const uint8_t* codes = block + 2;
  const uint8_t* signs = block + 34;
  const uint8_t* high = block + 66;
  const uint8_t* scales = block + 74;
  for (int k = 0; k < 32; ++k) {
    const int code = codes[k] | (high[k / 4] >> (2 * (k % 4)) & 3) << 8;
    const int nibble = scales[k / 4] >> (4 * (k / 2 % 2)) & 0xf;
    const float scale = d * (0.5f + static_cast<float>(nibble)) * 0.25f;
    out = PutIq2(codebook[static_cast<size_t>(code)], scale, signs[k], out);
  }
}

// d, codes[64] (four elements each), words[8] as in IQ2_XXS.
void IQ3_XXS(const uint8_t* block, float* out) {
  const auto& codebook = CodebookIQ3_XXS();
  const float d = Scale(block);
  for (int k = 0; k < 64; ++k) {
    const auto word = Load<uint32_t>(block + 66 + 4 * (k / 8));
    const float scale = d * (0.5f + static_cast<float>(word >> 28)) * 0.5f;
    const uint8_t signs = EvenSigns(word >> (7 * (k / 2 % 4)) & 0x7f);
    const Digits4& digits = codebook[block[2 + k]];
    for (size_t i = 0; i < 4; ++i)
      *out++ = scale * kIq3XxsValues[digits[i]] * Sign(signs, i + 4 * static_cast<size_t>(k % 2));
  }
}

// d, codes[64], code high bits[8], signs[32], scales[4] (one nibble per 32 elements).
// The values are the odd numbers 1 to 15.
void IQ3_S(const uint8_t* block, float* out) {
  const auto& codebook = CodebookIQ3_S();
  const float d = Scale(block);
  const uint8_t* codes = block + 2;
  const uint8_t* high = block + 66;
  const uint8_t* signs = block + 74;
  const uint8_t* scales = block + 106;
  for (int k = 0; k < 64; ++k) {
    const int nibble = scales[k / 16] >> (4 * (k / 8 % 2)) & 0xf;
    const float scale = d * static_cast<float>(1 + 2 * nibble);
    const int code = codes[k] | (high[k / 8] >> (k % 8) & 1) << 8;
    const Digits4& digits = codebook[static_cast<size_t>(code)];
    for (size_t i = 0; i < 4; ++i)
      *out++ = scale * static_cast<float>(2 * digits[i] + 1) *
               Sign(signs[k / 2], i + 4 * static_cast<size_t>(k % 2));
  }
}

float* PutIq1(const Digits8& digits, float scale, float delta, float* out) {
  for (const uint8_t digit : digits) *out++ = scale * (static_cast<float>(digit - 1) + delta);
  return out;
}

// d, codes[32], words[8] (four 3-bit code extensions, 3-bit scale, sign of delta).
void IQ1_S(const uint8_t* block, float* out) {
  const auto& codebook = CodebookIQ1();
  const float d = Scale(block);
  for (int k = 0; k < 32; ++k) {
    const auto word = Load<uint16_t>(block + 34 + 2 * (k / 4));
    const float scale = d * static_cast<float>(2 * (word >> 12 & 7) + 1);
    const float delta = (word & 0x8000) != 0 ? -kIq1Delta : kIq1Delta;
    const int code = block[2 + k] | (word >> (3 * (k % 4)) & 7) << 8;
    out = PutIq1(codebook[static_cast<size_t>(code)], scale, delta, out);
  }
}

// codes[32], code extensions[16] (a nibble per code: 3 bits, sign of delta), scale words[4]: four
// 3-bit scales each, their top nibbles together are the f16 super-scale.
void IQ1_M(const uint8_t* block, float* out) {
  const auto& codebook = CodebookIQ1();
  const uint8_t* extensions = block + 32;
  const uint8_t* words = block + 48;
  uint32_t d_bits = 0;
  for (int w = 0; w < 4; ++w)
    d_bits |= static_cast<uint32_t>(Load<uint16_t>(words + 2 * w) >> 12) << (4 * w);
  const float d = HalfToFloat(static_cast<uint16_t>(d_bits));
  for (int k = 0; k < 32; ++k) {
    const int extension = extensions[k / 2] >> (4 * (k % 2)) & 0xf;
    const int group = k / 2;
    const int small = Load<uint16_t>(words + 2 * (group / 4)) >> (3 * (group % 4)) & 7;
    const float scale = d * static_cast<float>(2 * small + 1);
    const float delta = (extension & 8) != 0 ? -kIq1Delta : kIq1Delta;
    const int code = block[k] | (extension & 7) << 8;
    out = PutIq1(codebook[static_cast<size_t>(code)], scale, delta, out);
  }
}

// d, nibbles[16] laid out as in Q4_0.
void IQ4_NL(const uint8_t* block, float* out) {
  const float d = Scale(block);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * kIq4Values[block[2 + j] & 0xf];
    out[j + 16] = d * kIq4Values[block[2 + j] >> 4];
  }
}

// d, high scale bits (two per group of 32), low scale nibbles[4], then groups as in IQ4_NL.
void IQ4_XS(const uint8_t* block, float* out) {
  const float d = Scale(block);
  const auto high = Load<uint16_t>(block + 2);
  for (int g = 0; g < 8; ++g) {
    const int low_bits = block[4 + g / 2] >> (4 * (g % 2)) & 0xf;
    const float scale = d * static_cast<float>((low_bits | (high >> (2 * g) & 3) << 4) - 32);
    const uint8_t* nibbles = block + 8 + 16 * g;
    for (int j = 0; j < 16; ++j) {
      out[32 * g + j] = scale * kIq4Values[nibbles[j] & 0xf];
      out[32 * g + j + 16] = scale * kIq4Values[nibbles[j] >> 4];
    }
  }
}

}  // namespace

BlockDecoder FindIqDecoder(DType dtype) {
  switch (dtype) {
    case DType::kIQ1_S:
      return IQ1_S;
    case DType::kIQ1_M:
      return IQ1_M;
    case DType::kIQ2_XXS:
      return IQ2_XXS;
    case DType::kIQ2_XS:
      return IQ2_XS;
    case DType::kIQ2_S:
      return IQ2_S;
    case DType::kIQ3_XXS:
      return IQ3_XXS;
    case DType::kIQ3_S:
      return IQ3_S;
    case DType::kIQ4_NL:
      return IQ4_NL;
    case DType::kIQ4_XS:
      return IQ4_XS;
    default:
      return nullptr;
  }
}

}  // namespace tessera::tensor
