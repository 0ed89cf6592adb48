// SPDX-License-Identifier: Apache-2.0
//
// What a pass decided about a module, and why: a sentence for report.md. Pure.
#pragma once

#include <string>
#include <string_view>

#include "compiler/module.h"

namespace tessera::compiler {

/// `pass` (pipeline.h) has run on `module` and no later one has. Empty for a pass that it does not
/// know.
std::string DecisionOf(std::string_view pass, const Module& module);

}  // namespace tessera::compiler
