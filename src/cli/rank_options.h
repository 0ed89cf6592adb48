// SPDX-License-Identifier: Apache-2.0
//
// How users say into how many ranks a model is sharded: --tp and --allow-uneven, in every verb that
// makes or runs a bundle.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "compiler/compile.h"

namespace CLI {
class App;
}

namespace tessera::cli {

/// "tp4" or "4" -> 4; kInvalidArgument for anything but 1 to 8.
Result<int64_t> ParseRanks(std::string_view text);

/// Declares the flags; the verb has set `compile` before its callback runs.
void AddRankOptions(CLI::App* verb, compiler::CompileOptions* compile);

}  // namespace tessera::cli
