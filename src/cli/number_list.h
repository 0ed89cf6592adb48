// SPDX-License-Identifier: Apache-2.0
//
// Lists of numbers on the command line: "512", "1,2,4", "128-512+128" (first to last in steps, one
// without), "1-32*2" (doubling). The forms of llama-bench.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace CLI {
class Validator;
}

namespace tessera::cli {

/// A flag may ask for so many values at once; more is a slip of the hand.
inline constexpr size_t kMaxNumbers = 1000;

/// What a number in a list can be at most.
inline constexpr int64_t kMaxNumber = int64_t{1} << 31;

/// In the order written, each from `least` to `most`. kInvalidArgument quotes what is no list.
Result<std::vector<int64_t>> ParseNumberList(std::string_view text, int64_t least,
                                             int64_t most = kMaxNumber);

/// The same as a check of a flag whose value stays text.
CLI::Validator NumberList(int64_t least, int64_t most = kMaxNumber);

}  // namespace tessera::cli
