// SPDX-License-Identifier: Apache-2.0
//
// Checks of flag values with messages for people: the value, what was expected. CLI11's own print
// bounds of 300 digits, clamp what does not fit and take NaN. What they refuse is wrong usage.
#pragma once

#include <cstdint>
#include <limits>

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

/// UTF-8 without control characters, and not "": an empty address or key would quietly mean "all
/// interfaces" or "no key".
CLI::Validator PlainText();

}  // namespace tessera::cli
