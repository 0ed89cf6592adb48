// SPDX-License-Identifier: Apache-2.0
//
// Bounds of the key file and of what an entry may say, each tested at n and n + 1.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::access {

inline constexpr uint64_t kKeyFileBytesMax = 4 << 20;
/// Every call compares all of them; an engine remembers as many clients.
inline constexpr size_t kKeysMax = 4096;
inline constexpr size_t kKeyNameBytesMax = 64;
inline constexpr int64_t kKeyRateMax = 1'000'000'000'000;  // Requests or tokens a minute.
inline constexpr int64_t kKeyConcurrencyMax = 1'000'000;
inline constexpr int32_t kPriorityMax = 1000000;  // Of requests and keys, from minus that.

}  // namespace tessera::access
