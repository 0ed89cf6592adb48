// SPDX-License-Identifier: Apache-2.0
//
// Checks of flag values with messages for people; CLI11's own print the range of a double.
#pragma once

#include <cstdint>

namespace CLI {
class Validator;
}

namespace tessera::cli {

/// A whole number, at least `least`.
CLI::Validator AtLeast(int64_t least);

/// A size as ParseByteSize takes it, for an option's transform(): the option gets bytes.
CLI::Validator ByteSize();

/// Not "": an empty address or key would quietly mean "all interfaces" or "no key".
CLI::Validator NotEmpty();

}  // namespace tessera::cli
