// SPDX-License-Identifier: Apache-2.0
//
// Codebooks of the IQ formats. A codebook lists vectors of small digits in ascending order, read as
// numbers whose first digit is the least significant; so each is stored as the set of its members,
// one bit per possible number, and expanded once. Digits index the format's value list.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace tessera::tensor {

/// Eight base-3 digits per entry (IQ1, IQ2).
using Digits8 = std::array<uint8_t, 8>;
/// Four base-8 digits per entry (IQ3).
using Digits4 = std::array<uint8_t, 4>;

// Expanded on first use, thread-safe; they live as long as the program.
const std::vector<Digits8>& CodebookIQ1();      // 2048 entries; digit 1 is zero.
const std::vector<Digits8>& CodebookIQ2_XXS();  // 256 entries.
const std::vector<Digits8>& CodebookIQ2_XS();   // 512 entries.
const std::vector<Digits8>& CodebookIQ2_S();    // 1024 entries.
const std::vector<Digits4>& CodebookIQ3_XXS();  // 256 entries.
const std::vector<Digits4>& CodebookIQ3_S();    // 512 entries.

}  // namespace tessera::tensor
