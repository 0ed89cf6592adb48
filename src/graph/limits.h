// SPDX-License-Identifier: Apache-2.0
//
// Limits of graphs from outside (text files). Far above any real model; they bound what a hostile
// text can make us allocate or compute.
#pragma once

#include <cstdint>

namespace tessera::graph {

inline constexpr uint64_t kMaxTextBytes = 64ull << 20;
inline constexpr uint64_t kMaxNodes = 1u << 18;  // 405B has about 4,000.
inline constexpr uint64_t kMaxRopeTables = 16;
inline constexpr int64_t kMaxRotaryDim = 8192;
inline constexpr int64_t kMaxDimension = int64_t{1} << 31;
inline constexpr int kMaxRank = 4;
inline constexpr uint64_t kMaxNameBytes = 256;

}  // namespace tessera::graph
