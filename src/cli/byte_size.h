// SPDX-License-Identifier: Apache-2.0
//
// Sizes as people write them on the command line.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace tessera::cli {

/// "4096", "512M", "1.5G", "2GiB" -> bytes, rounded down. k, M, G, T are powers of 1000, as sizes
/// are printed; Ki, Mi, Gi, Ti powers of 1024; a B at the end and the case of the first letter do
/// not matter. kInvalidArgument for anything else, for 0 and beyond 2^62.
Result<uint64_t> ParseByteSize(std::string_view text);

}  // namespace tessera::cli
