// SPDX-License-Identifier: Apache-2.0
//
// Altered tokenizer tables for tests and the fuzzer: with the checksum made right again, so that
// the checks behind it are reached. Written from the layout in textkit/src/stored/table.rs, not
// from its code.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tessera::text {

inline constexpr size_t kTableVersionAt = 8;
inline constexpr size_t kTableSizeAt = 16;
inline constexpr size_t kTableChecksumAt = 24;
inline constexpr size_t kTableCheckedFrom = 32;
inline constexpr size_t kTableHeaderBytes = 128;

template <class T>
void PutNumber(std::string* bytes, size_t at, T value) {
  std::memcpy(bytes->data() + at, &value, sizeof(T));
}

inline uint64_t TableChecksum(std::string_view bytes) {
  constexpr uint64_t kMix = 0x9E3779B97F4A7C15;
  constexpr uint64_t kMix2 = 0xD6E8FEB86659FD93;
  const auto finish = [](uint64_t x) {
    x = (x ^ (x >> 32)) * kMix2;
    return (x ^ (x >> 29)) * kMix;
  };
  std::array<uint64_t, 4> lanes = {kMix, kMix2, ~kMix, ~kMix2};
  const size_t blocks = bytes.size() / 32 + 1;  // The last one is padded with zeros.
  for (size_t block = 0; block < blocks; ++block) {
    std::array<uint64_t, 4> words{};
    const std::string_view piece = bytes.substr(block * 32, 32);
    std::memcpy(words.data(), piece.data(), piece.size());
    for (size_t i = 0; i < 4; ++i) lanes[i] = std::rotl((lanes[i] ^ words[i]) * kMix, 29);
  }
  uint64_t sum = bytes.size();
  for (const uint64_t lane : lanes) sum = finish(sum ^ lane) + lane;
  return sum;
}

/// `table` with the size and checksum that it should have; as it is if it has no header.
inline std::string WithChecksum(std::string table) {
  if (table.size() < kTableHeaderBytes) return table;
  PutNumber<uint64_t>(&table, kTableSizeAt, table.size());
  PutNumber<uint64_t>(&table, kTableChecksumAt,
                      TableChecksum(std::string_view(table).substr(kTableCheckedFrom)));
  return table;
}

}  // namespace tessera::text
