// SPDX-License-Identifier: Apache-2.0
//
// Flags that people know from vLLM, SGLang and llama.cpp, or from our own plans, and that a verb
// does not have: each is answered with what to do instead of "not expected".
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::cli {

/// One sentence about the flag ("--dtype", "-ngl"); nothing when we do not know it either.
std::optional<std::string_view> ExplainForeignFlag(std::string_view flag);

/// How the chosen verb takes an argument.
enum class FlagUse { kUnknown, kSwitch, kTakesValue };

/// The first argument that is a flag unknown to the verb (as `use` tells) and known to
/// ExplainForeignFlag: "--dtype: ...". Values of known flags are not looked at, nor what follows
/// "--".
std::optional<std::string> FindForeignFlag(const std::vector<std::string>& arguments,
                                           const std::function<FlagUse(const std::string&)>& use);

}  // namespace tessera::cli
