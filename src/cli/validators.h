// SPDX-License-Identifier: Apache-2.0
//
// Checks of flag values with messages for people: the value, what was expected. CLI11's own print
// bounds of 300 digits, clamp what does not fit and take NaN. What they refuse is wrong usage.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace CLI {
class Validator;
}

namespace tessera::cli {

/// A whole number from `low` to `high`.
CLI::Validator WholeNumber(int64_t low, int64_t high = std::numeric_limits<int64_t>::max());

/// A finite number from `low` to `high`.
CLI::Validator Number(double low, double high);

/// A size as ParseByteSize takes it, for an option's transform(): the option gets bytes.
CLI::Validator ByteSize();

/// The same, or "off", which gives 0.
CLI::Validator ByteSizeOrOff();

/// The seed that asks for a drawn one, here as in llama.cpp.
inline constexpr std::string_view kDrawnSeed = "-1";
/// The number of a text that Seed() accepts; nothing for kDrawnSeed.
std::optional<uint64_t> ParseSeed(std::string_view text);
/// A whole number from 0 to 2^64-1, or kDrawnSeed. Other negative numbers are refused: they would
/// wrap around.
CLI::Validator Seed();

/// Any text but "".
CLI::Validator NotEmpty();

/// UTF-8 without control characters, and not "": an empty address or key would quietly mean "all
/// interfaces" or "no key".
CLI::Validator PlainText();

}  // namespace tessera::cli
