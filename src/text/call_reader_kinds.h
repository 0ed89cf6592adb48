// SPDX-License-Identifier: Apache-2.0
//
// The kinds of CallReader, for call_reader.cc alone.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "text/call_reader.h"

namespace tessera::text {

std::unique_ptr<CallReader> MakeObjectCallReader(const ToolSyntax& syntax);
std::unique_ptr<CallReader> MakeParameterReader(const ToolSyntax& syntax, const ToolSpec* tool);

}  // namespace tessera::text
