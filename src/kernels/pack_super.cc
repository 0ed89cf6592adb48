// SPDX-License-Identifier: Apache-2.0
#include "kernels/pack_super.h"

#include <bit>
#include <cstring>

namespace tessera::kernels {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr int kSubBlocks = 8;  // Of 32 inputs.

template <class Word>
Word Load(const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

void Store(std::byte* to, uint32_t word) {
  std::memcpy(to, &word, sizeof(word));
}

constexpr uint64_t kLowNibbles = 0x0f0f0f0f0f0f0f0f;

/// Codes of inputs 0..31 of a sub-block of row j, one in a nibble of each source byte (`upper`: the
/// high one), to [4 chunks][8 rows][4 bytes]: input t in the low, t + 16 in the high nibble.
void PackNibbles(const std::byte* source, bool upper, int64_t j, std::byte* codes) {
  for (int half = 0; half < 2; ++half) {
    const auto first = Load<uint64_t>(source + 8 * half);
    const auto second = Load<uint64_t>(source + 16 + 8 * half);
    const uint64_t pair = upper ? ((first >> 4) & kLowNibbles) | (second & ~kLowNibbles)
                                : (first & kLowNibbles) | ((second & kLowNibbles) << 4);
    std::byte* to = codes + 64 * half + 4 * j;
    Store(to, static_cast<uint32_t>(pair));
    Store(to + 32, static_cast<uint32_t>(pair >> 32));
  }
}

/// The transposed 8x8 matrix of bits: bit c of byte r becomes bit r of byte c.
uint64_t TransposeBits(uint64_t bits) {
  const auto exchange = [&](int distance, uint64_t mask) {
    const uint64_t differ = (bits ^ (bits >> distance)) & mask;
    bits ^= differ ^ (differ << distance);
  };
  exchange(7, 0x00aa00aa00aa00aa);
  exchange(14, 0x0000cccc0000cccc);
  exchange(28, 0x00000000f0f0f0f0);
  return bits;
}

/// Fifth bits of Q5_K: source bit i of byte t belongs to input t of sub-block i; ours are
/// [8 sub-blocks][8 rows][4 bytes], bit t of byte b of input 4t + b.
void PackQ5KHigh(const std::byte* source, int64_t j, std::byte* high) {
  std::array<uint32_t, kSubBlocks> words{};
  for (int b = 0; b < 4; ++b) {
    uint64_t column = 0;
    for (int t = 0; t < 8; ++t) column |= static_cast<uint64_t>(source[4 * t + b]) << (8 * t);
    column = TransposeBits(column);
    for (int i = 0; i < kSubBlocks; ++i)
      words[static_cast<size_t>(i)] |= static_cast<uint32_t>((column >> (8 * i)) & 255) << (8 * b);
  }
  for (int i = 0; i < kSubBlocks; ++i) Store(high + 32 * i + 4 * j, words[static_cast<size_t>(i)]);
}

/// One super-block of one row of Q4_K or Q5_K: d, dmin, 12 B scales, [32 B fifth bits], 128 B
/// nibbles: per 64 inputs 32 bytes, low nibbles first half.
template <DType dtype>
void PackQ45KRow(const std::byte* source, int64_t j, std::byte* super) {
  constexpr bool kFive = dtype == DType::kQ5_K;
  std::memcpy(super + 2 * j, source, 2);
  std::memcpy(super + 16 + 2 * j, source + 2, 2);
  for (int w = 0; w < 3; ++w)
    Store(super + 32 + 32 * w + 4 * j, Load<uint32_t>(source + 4 + 4 * w));
  const std::byte* low = source + (kFive ? 48 : 16);
  for (int i = 0; i < kSubBlocks; ++i)
    PackNibbles(low + i / 2 * 32, i % 2 != 0, j, super + 128 + 128 * i);
  if constexpr (kFive) PackQ5KHigh(source + 16, j, super + 128 + 1024);
}

/// One super-block of one row of Q6_K: 128 B low, 64 B high, 16 int8 scales, d. Per 128 inputs: low
/// byte l and l+32 hold inputs l, l+32 (low nibbles) and l+64, l+96; high byte l their upper bits.
void PackQ6KRow(const std::byte* source, int64_t j, std::byte* super) {
  std::memcpy(super + 2 * j, source + 208, 2);
  for (int i = 0; i < kSubBlocks; ++i) {
    const int half = i / 4, quarter = i % 4;
    std::memcpy(super + 16 + 16 * i + 2 * j, source + 192 + 2 * i, 2);
    PackNibbles(source + 64 * half + 32 * (quarter % 2), quarter >= 2, j, super + 144 + 128 * i);
    for (int plane = 0; plane < 2; ++plane) {
      uint32_t word = 0;
      for (int t = 0; t < 4; ++t) {
        const auto bits = Load<uint32_t>(source + 128 + 32 * half + 16 * plane + 4 * t);
        word |= ((bits >> (2 * quarter)) & 0x03030303) << (2 * t);
      }
      Store(super + 144 + 1024 + 64 * i + 32 * plane + 4 * j, word);
    }
  }
}

}  // namespace

void PackSuperGroup(DType dtype, int64_t k, const std::array<const std::byte*, kGroupRows>& rows,
                    std::byte* packed) {
  const int64_t source_bytes = SuperBytes(dtype) / kGroupRows;
  for (int64_t s = 0; s < k / kSuperBlock; ++s) {
    std::byte* super = packed + s * SuperBytes(dtype);
    for (int64_t j = 0; j < kGroupRows; ++j) {
      static constexpr std::array<std::byte, SuperBytes(DType::kQ6_K) / kGroupRows> kZeros{};
      const std::byte* row = rows[static_cast<size_t>(j)];
      const std::byte* source = row != nullptr ? row + s * source_bytes : kZeros.data();
      if (dtype == DType::kQ4_K) PackQ45KRow<DType::kQ4_K>(source, j, super);
      if (dtype == DType::kQ5_K) PackQ45KRow<DType::kQ5_K>(source, j, super);
      if (dtype == DType::kQ6_K) PackQ6KRow(source, j, super);
    }
  }
}

}  // namespace tessera::kernels
