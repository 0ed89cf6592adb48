// SPDX-License-Identifier: Apache-2.0
//
// Flags that shape a bundle, given for a bundle that is made already.
#pragma once

#include <functional>
#include <string_view>

#include "base/status.h"
#include "bundle/manifest.h"
#include "compiler/compile.h"

namespace tessera::cli {

/// Whether the user gave a flag: "--max-seq-len".
using FlagGiven = std::function<bool(std::string_view)>;

/// kFailedPrecondition naming the first flag given whose value in `options` is not the bundle's,
/// with both values. 0 of --max-seq-len and --device-block-count asks for nothing.
Status CheckAgainstBundle(const bundle::Manifest& manifest, const compiler::CompileOptions& options,
                          const FlagGiven& given);

}  // namespace tessera::cli
