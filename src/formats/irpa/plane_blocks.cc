// SPDX-License-Identifier: Apache-2.0
#include "formats/irpa/plane_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "tensor/convert.h"

namespace tessera::formats::irpa {
namespace {

using tensor::DType;

constexpr uint64_t kHalf = kShortBlock / 2;

unsigned Byte(const std::byte* bytes, uint64_t i) {
  return std::to_integer<unsigned>(bytes[i]);
}
std::byte ToByte(unsigned value) {
  return static_cast<std::byte>(value & 0xff);
}
float Half(const std::byte* bytes) {
  uint16_t bits = 0;
  std::memcpy(&bits, bytes, sizeof(bits));
  return tensor::HalfToFloat(bits);
}

/// Code of element i when consecutive elements share a byte.
unsigned LinearNibble(const std::byte* bytes, uint64_t i) {
  return (Byte(bytes, i / 2) >> (i % 2 * 4)) & 0xf;
}

/// 16 bytes with consecutive elements -> 16 with elements j and j + 16; `flip` toggles a code's top
/// bit, which turns signed codes into offset ones and back.
void ToSplitNibbles(const std::byte* linear, std::byte* split, unsigned flip) {
  for (uint64_t j = 0; j < kHalf; ++j)
    split[j] =
        ToByte((LinearNibble(linear, j) ^ flip) | (LinearNibble(linear, j + kHalf) ^ flip) << 4);
}

/// Code of element i of a block whose byte j holds elements j and j + 16.
unsigned SplitNibble(const std::byte* bytes, uint64_t i) {
  return (Byte(bytes, i % kHalf) >> (i / kHalf * 4)) & 0xf;
}

void ToLinearNibbles(const std::byte* split, std::byte* linear, unsigned flip) {
  for (uint64_t j = 0; j < kHalf; ++j)
    linear[j] =
        ToByte((SplitNibble(split, 2 * j) ^ flip) | (SplitNibble(split, 2 * j + 1) ^ flip) << 4);
}

// --- Q4_K: eight pairs of six bits in twelve bytes (tensor/convert_k_quants.cc).

struct SixBits {
  std::array<unsigned, 8> scale;
  std::array<unsigned, 8> minimum;
};

SixBits UnpackSixBits(const std::byte* raw) {
  SixBits out{};
  for (uint64_t g = 0; g < 4; ++g) {
    out.scale[g] = Byte(raw, g) & 0x3f;
    out.minimum[g] = Byte(raw, g + 4) & 0x3f;
    out.scale[g + 4] = (Byte(raw, g + 8) & 0xf) | (Byte(raw, g) >> 6 << 4);
    out.minimum[g + 4] = (Byte(raw, g + 8) >> 4) | (Byte(raw, g + 4) >> 6 << 4);
  }
  return out;
}

void PackSixBits(const SixBits& in, std::byte* raw) {
  for (uint64_t g = 0; g < 4; ++g) {
    raw[g] = ToByte(in.scale[g] | in.scale[g + 4] >> 4 << 6);
    raw[g + 4] = ToByte(in.minimum[g] | in.minimum[g + 4] >> 4 << 6);
    raw[g + 8] = ToByte((in.scale[g + 4] & 0xf) | (in.minimum[g + 4] & 0xf) << 4);
  }
}

std::array<unsigned, 8> JoinSixBits(const std::byte* high, const std::byte* low) {
  std::array<unsigned, 8> out{};
  for (uint64_t g = 0; g < 8; ++g)
    out[g] = LinearNibble(low, g) | ((Byte(high, g / 4) >> (g % 4 * 2)) & 3) << 4;
  return out;
}

/// Element i of a Q4_K block's 128 bytes: runs of 64 share 32 bytes.
unsigned SuperNibble(const std::byte* bytes, uint64_t i) {
  return (Byte(bytes, i / 64 * 32 + i % 32) >> (i % 64 / 32 * 4)) & 0xf;
}

// --- Extraction: a plane's part of each block. `kBytes` is the block's size.

void Put(std::vector<std::byte>* out, const std::byte* bytes, uint64_t count) {
  out->insert(out->end(), bytes, bytes + count);
}
void PutFloat(std::vector<std::byte>* out, float value) {
  std::array<std::byte, sizeof(float)> bytes;
  std::memcpy(bytes.data(), &value, sizeof(value));
  Put(out, bytes.data(), bytes.size());
}

/// Bytes [kBegin, kBegin + kCount) of each block as they are.
template <uint64_t kBytes, uint64_t kBegin, uint64_t kCount>
void Copy(const std::byte* in, uint64_t blocks, std::vector<std::byte>* out) {
  for (uint64_t b = 0; b < blocks; ++b) Put(out, in + b * kBytes + kBegin, kCount);
}

template <uint64_t kBytes, uint64_t kBegin, unsigned kFlip>
void Linear(const std::byte* in, uint64_t blocks, std::vector<std::byte>* out) {
  std::array<std::byte, kHalf> linear;
  for (uint64_t b = 0; b < blocks; ++b) {
    ToLinearNibbles(in + b * kBytes + kBegin, linear.data(), kFlip);
    Put(out, linear.data(), kHalf);
  }
}

template <bool kMinimum, bool kHigh>
void SixBitPlane(const std::byte* in, uint64_t blocks, std::vector<std::byte>* out) {
  for (uint64_t b = 0; b < blocks; ++b) {
    const SixBits six = UnpackSixBits(in + b * 144 + 4);
    const std::array<unsigned, 8>& of = kMinimum ? six.minimum : six.scale;
    if constexpr (kHigh) {
      for (uint64_t i = 0; i < 8; i += 4)
        out->push_back(
            ToByte(of[i] >> 4 | of[i + 1] >> 4 << 2 | of[i + 2] >> 4 << 4 | of[i + 3] >> 4 << 6));
    } else {
      for (uint64_t i = 0; i < 8; i += 2)
        out->push_back(ToByte((of[i] & 0xf) | (of[i + 1] & 0xf) << 4));
    }
  }
}

void SuperCodes(const std::byte* in, uint64_t blocks, std::vector<std::byte>* out) {
  for (uint64_t b = 0; b < blocks; ++b)
    for (uint64_t i = 0; i < kSuperBlock; i += 2)
      out->push_back(
          ToByte(SuperNibble(in + b * 144 + 16, i) | SuperNibble(in + b * 144 + 16, i + 1) << 4));
}

/// Q5_0 (fifth bits at 2, nibbles at 6, offset 16) and Q5_1 (at 4 and 8, none) as int8.
template <uint64_t kBytes, uint64_t kFifth, int kOffset>
void FiveBitCodes(const std::byte* in, uint64_t blocks, std::vector<std::byte>* out) {
  for (uint64_t b = 0; b < blocks; ++b) {
    const std::byte* block = in + b * kBytes;
    for (uint64_t i = 0; i < kShortBlock; ++i) {
      const unsigned fifth = (Byte(block, kFifth + i / 8) >> (i % 8)) & 1;
      const int code = static_cast<int>(SplitNibble(block + kFifth + 4, i) | fifth << 4) - kOffset;
      out->push_back(ToByte(static_cast<unsigned>(code)));
    }
  }
}

// Q5_K: d, dmin, six-bit pairs, 32 bytes of fifth bits, nibbles.
template <bool kMinimum>
void Q5KScales(const std::byte* in, uint64_t blocks, std::vector<std::byte>* out) {
  for (uint64_t b = 0; b < blocks; ++b) {
    const std::byte* block = in + b * 176;
    const SixBits six = UnpackSixBits(block + 4);
    for (uint64_t g = 0; g < 8; ++g)
      PutFloat(out, kMinimum ? -(Half(block + 2) * static_cast<float>(six.minimum[g]))
                             : Half(block) * static_cast<float>(six.scale[g]));
  }
}
void Q5KCodes(const std::byte* in, uint64_t blocks, std::vector<std::byte>* out) {
  for (uint64_t b = 0; b < blocks; ++b) {
    const std::byte* block = in + b * 176;
    for (uint64_t i = 0; i < kSuperBlock; ++i)
      out->push_back(
          ToByte(SuperNibble(block + 48, i) | ((Byte(block, 16 + i % 32) >> (i / 32)) & 1) << 4));
  }
}

// Q6_K: low nibbles (runs of 128 share 64 bytes), high pairs (runs of 128 share 32), int8 scales,
// d.
void Q6KScales(const std::byte* in, uint64_t blocks, std::vector<std::byte>* out) {
  for (uint64_t b = 0; b < blocks; ++b) {
    const std::byte* block = in + b * 210;
    for (uint64_t g = 0; g < 16; ++g)
      PutFloat(out,
               Half(block + 208) * static_cast<float>(static_cast<int8_t>(Byte(block, 192 + g))));
  }
}
void Q6KCodes(const std::byte* in, uint64_t blocks, std::vector<std::byte>* out) {
  for (uint64_t b = 0; b < blocks; ++b) {
    const std::byte* block = in + b * 210;
    for (uint64_t i = 0; i < kSuperBlock; ++i) {
      const unsigned low = (Byte(block, i / 128 * 64 + i % 64) >> (i % 128 / 64 * 4)) & 0xf;
      const unsigned high = (Byte(block, 128 + i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2)) & 3;
      out->push_back(ToByte((low | high << 4) - 32));
    }
  }
}

/// Products of one f16 and N integers from `low` to `high` (all times `sign`) -> the f16 to `half`,
/// the integers to `factors`. Not always those that were multiplied, but the same products.
template <size_t N>
bool FindFactor(const std::byte* plane, float sign, int low, int high, std::byte* half,
                std::array<unsigned, N>* factors) {
  std::array<float, N> products;
  std::memcpy(products.data(), plane, sizeof(products));
  float largest = 0;
  for (float& product : products) {
    product *= sign;
    if (!(std::abs(product) <= 1e9F)) return false;
    if (std::abs(product) > std::abs(largest)) largest = product;
  }
  for (int most = std::max(high, -low); most >= 1; --most) {
    for (const int s : {most, -most}) {
      if (s < low || s > high) continue;
      const float d = largest / static_cast<float>(s);
      const uint16_t bits = tensor::FloatToHalf(d);
      if (tensor::HalfToFloat(bits) != d) continue;
      bool all = true;
      for (size_t i = 0; all && i < N; ++i) {
        const float n = d == 0 ? 0 : std::nearbyint(products[i] / d);
        all = n >= static_cast<float>(low) && n <= static_cast<float>(high) && d * n == products[i];
        if (all) (*factors)[i] = static_cast<unsigned>(static_cast<int>(n));
      }
      if (!all) continue;
      std::memcpy(half, &bits, sizeof(bits));
      return true;
    }
  }
  return false;
}

constexpr std::string_view kBlockScaled = "BlockScaledLayout";
constexpr std::string_view kBlockScaledI4 = "BlockScaledI4Layout";

}  // namespace

bool AssembleQ8_0(std::span<const ByteSpan> planes, uint64_t blocks, uint64_t repeat,
                  std::span<std::byte> out) {
  for (uint64_t b = 0; b < blocks; ++b) {
    std::byte* block = out.data() + b * 34;
    std::memcpy(block, planes[0].data() + b / repeat * 2, 2);
    std::memcpy(block + 2, planes[1].data() + b * kShortBlock, kShortBlock);
  }
  return true;
}

bool AssembleQ4_0(std::span<const ByteSpan> planes, uint64_t blocks, uint64_t repeat,
                  std::span<std::byte> out) {
  for (uint64_t b = 0; b < blocks; ++b) {
    std::byte* block = out.data() + b * 18;
    std::memcpy(block, planes[0].data() + b / repeat * 2, 2);
    ToSplitNibbles(planes[1].data() + b * kHalf, block + 2, 8);
  }
  return true;
}

bool AssembleQ4_1(std::span<const ByteSpan> planes, uint64_t blocks, uint64_t repeat,
                  std::span<std::byte> out) {
  for (uint64_t b = 0; b < blocks; ++b) {
    std::byte* block = out.data() + b * 20;
    std::memcpy(block, planes[0].data() + b / repeat * 2, 2);
    std::memset(block + 2, 0, 2);
    if (planes.size() > 2) std::memcpy(block + 2, planes[2].data() + b / repeat * 2, 2);
    ToSplitNibbles(planes[1].data() + b * kHalf, block + 4, 0);
  }
  return true;
}

bool AssembleQ4_K(std::span<const ByteSpan> planes, uint64_t blocks, uint64_t /*repeat*/,
                  std::span<std::byte> out) {
  for (uint64_t b = 0; b < blocks; ++b) {
    std::byte* block = out.data() + b * 144;
    std::memcpy(block, planes[0].data() + b * 2, 2);
    std::memcpy(block + 2, planes[1].data() + b * 2, 2);
    PackSixBits({JoinSixBits(planes[2].data() + b * 2, planes[3].data() + b * 4),
                 JoinSixBits(planes[4].data() + b * 2, planes[5].data() + b * 4)},
                block + 4);
    const std::byte* codes = planes[6].data() + b * kSuperBlock / 2;
    for (uint64_t run = 0; run < kSuperBlock; run += 64)
      for (uint64_t i = 0; i < 32; ++i)
        block[16 + run / 2 + i] =
            ToByte(LinearNibble(codes, run + i) | LinearNibble(codes, run + 32 + i) << 4);
  }
  return true;
}

bool AssembleMxfp4(std::span<const ByteSpan> planes, uint64_t blocks, uint64_t /*repeat*/,
                   std::span<std::byte> out) {
  for (uint64_t b = 0; b < blocks; ++b) {
    std::byte* block = out.data() + b * 17;
    block[0] = planes[0][b];
    ToSplitNibbles(planes[1].data() + b * kHalf, block + 1, 0);
  }
  return true;
}

bool AssembleQ5_K(std::span<const ByteSpan> planes, uint64_t blocks, uint64_t /*repeat*/,
                  std::span<std::byte> out) {
  for (uint64_t b = 0; b < blocks; ++b) {
    std::byte* block = out.data() + b * 176;
    std::memset(block, 0, 176);
    SixBits six{};
    if (!FindFactor<8>(planes[0].data() + b * 32, 1, 0, 63, block, &six.scale)) return false;
    if (!FindFactor<8>(planes[2].data() + b * 32, -1, 0, 63, block + 2, &six.minimum)) return false;
    PackSixBits(six, block + 4);
    for (uint64_t i = 0; i < kSuperBlock; ++i) {
      const unsigned code = Byte(planes[1].data(), b * kSuperBlock + i);
      if (code > 31) return false;
      block[48 + i / 64 * 32 + i % 32] |= ToByte((code & 0xf) << (i % 64 / 32 * 4));
      block[16 + i % 32] |= ToByte((code >> 4) << (i / 32));
    }
  }
  return true;
}

bool AssembleQ6_K(std::span<const ByteSpan> planes, uint64_t blocks, uint64_t /*repeat*/,
                  std::span<std::byte> out) {
  for (uint64_t b = 0; b < blocks; ++b) {
    std::byte* block = out.data() + b * 210;
    std::memset(block, 0, 210);
    std::array<unsigned, 16> scales{};
    if (!FindFactor<16>(planes[0].data() + b * 64, 1, -128, 127, block + 208, &scales))
      return false;
    for (uint64_t g = 0; g < 16; ++g) block[192 + g] = ToByte(scales[g]);
    for (uint64_t i = 0; i < kSuperBlock; ++i) {
      const unsigned code = (Byte(planes[1].data(), b * kSuperBlock + i) + 32) & 0xff;
      if (code > 63) return false;
      block[i / 128 * 64 + i % 64] |= ToByte((code & 0xf) << (i % 128 / 64 * 4));
      block[128 + i / 128 * 32 + i % 32] |= ToByte((code >> 4) << (i % 128 / 32 * 2));
    }
  }
  return true;
}

const PlanarFormat* PlanarFormatOf(DType dtype) {
  static const PlanarFormat kQ8_0{kBlockScaled,
                                  -1,
                                  {{"d", DType::kF16, {1}, 1, 2, Copy<34, 0, 2>},
                                   {"qs", DType::kI8, {32}, 1, 32, Copy<34, 2, 32>}}};
  static const PlanarFormat kQ4_0{kBlockScaledI4,
                                  1,
                                  {{"d", DType::kF16, {1}, 1, 2, Copy<18, 0, 2>},
                                   {"qs", DType::kU8, {16}, 1, 16, Linear<18, 2, 8>}}};
  static const PlanarFormat kQ4_1{kBlockScaledI4,
                                  0,
                                  {{"d", DType::kF16, {1}, 1, 2, Copy<20, 0, 2>},
                                   {"qs", DType::kU8, {16}, 1, 16, Linear<20, 4, 0>},
                                   {"m", DType::kF16, {1}, 1, 2, Copy<20, 2, 2>}}};
  static const PlanarFormat kQ5_0{kBlockScaled,
                                  -1,
                                  {{"d", DType::kF16, {1}, 1, 2, Copy<22, 0, 2>},
                                   {"qs", DType::kI8, {32}, 1, 32, FiveBitCodes<22, 2, 16>}}};
  static const PlanarFormat kQ5_1{kBlockScaled,
                                  -1,
                                  {{"d", DType::kF16, {1}, 1, 2, Copy<24, 0, 2>},
                                   {"qs", DType::kI8, {32}, 1, 32, FiveBitCodes<24, 4, 0>},
                                   {"m", DType::kF16, {1}, 1, 2, Copy<24, 2, 2>}}};
  static const PlanarFormat kQ4_K{
      "SuperBlockOffsetScaled_4_6_Layout",
      -1,
      {{"d", DType::kF16, {1}, 1, 2, Copy<144, 0, 2>},
       {"dmin", DType::kF16, {1}, 1, 2, Copy<144, 2, 2>},
       {"sb_scales_high", DType::kU8, {2}, 1, 2, SixBitPlane<false, true>},
       {"sb_scales_low", DType::kU8, {4}, 1, 4, SixBitPlane<false, false>},
       {"sb_mins_high", DType::kU8, {2}, 1, 2, SixBitPlane<true, true>},
       {"sb_mins_low", DType::kU8, {4}, 1, 4, SixBitPlane<true, false>},
       {"qs", DType::kU8, {8, 16}, 1, 128, SuperCodes}}};
  static const PlanarFormat kQ5_K{kBlockScaled,
                                  -1,
                                  {{"d", DType::kF32, {1}, 8, 32, Q5KScales<false>},
                                   {"qs", DType::kI8, {32}, 8, 256, Q5KCodes},
                                   {"m", DType::kF32, {1}, 8, 32, Q5KScales<true>}}};
  static const PlanarFormat kQ6_K{
      kBlockScaled,
      -1,
      {{"d", DType::kF32, {1}, 16, 64, Q6KScales}, {"qs", DType::kI8, {16}, 16, 256, Q6KCodes}}};
  switch (dtype) {
    case DType::kQ8_0:
      return &kQ8_0;
    case DType::kQ4_0:
      return &kQ4_0;
    case DType::kQ4_1:
      return &kQ4_1;
    case DType::kQ5_0:
      return &kQ5_0;
    case DType::kQ5_1:
      return &kQ5_1;
    case DType::kQ4_K:
      return &kQ4_K;
    case DType::kQ5_K:
      return &kQ5_K;
    case DType::kQ6_K:
      return &kQ6_K;
    default:
      return nullptr;
  }
}

}  // namespace tessera::formats::irpa
