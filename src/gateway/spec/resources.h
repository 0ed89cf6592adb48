// SPDX-License-Identifier: Apache-2.0
//
// Amounts of CPU, memory and disk as the Kubernetes API writes them (apimachinery, "Quantity"):
// "32", "500m", "40Gi", "1.5G", or a plain JSON number. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera::gateway {

/// The amount in thousandths (of a CPU, of a byte), or nothing for what is no quantity, is below
/// zero or exceeds kQuantityMax. Suffixes: m, k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent e3.
std::optional<int64_t> ParseQuantity(std::string_view text);

inline constexpr int64_t kQuantityMaxUnits = int64_t{1} << 52;

}  // namespace tessera::gateway
