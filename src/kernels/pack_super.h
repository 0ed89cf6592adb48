// SPDX-License-Identifier: Apache-2.0
//
// The part of pack.cc for formats with super-blocks of 256 inputs, and the bit shuffles of fifth
// bits. Internal to packing; pure, any thread. Everything works on words of eight or four bytes:
// baseline x86-64 packs Q4_K at several GB/s a core so, and the order of bits stays readable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/layout.h"
#include "kernels/pack.h"

namespace tessera::kernels {

/// One group of eight rows of Q4_K, Q5_K or Q6_K; null rows become zeros. As PackGroup().
void PackSuperGroup(DType dtype, int64_t k, const std::array<const std::byte*, kGroupRows>& rows,
                    std::byte* packed);

/// Fifth bits of a GGUF block (bit n = input n) in our order: bit t of byte i = input 4t + i.
/// The number of a bit, t2 t1 t0 i1 i0, is rotated by two; each half of the function, an "outer
/// unshuffle" (Warren, Hacker's Delight, 7-2), rotates it by one.
inline uint32_t ShuffleFifthBits(uint32_t bits) {
  for (int turn = 0; turn < 2; ++turn) {
    const auto exchange = [&](int distance, uint32_t mask) {
      const uint32_t differ = (bits ^ (bits >> distance)) & mask;
      bits ^= differ ^ (differ << distance);
    };
    exchange(1, 0x22222222);
    exchange(2, 0x0c0c0c0c);
    exchange(4, 0x00f000f0);
    exchange(8, 0x0000ff00);
  }
  return bits;
}

}  // namespace tessera::kernels
