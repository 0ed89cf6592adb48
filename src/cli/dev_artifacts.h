// SPDX-License-Identifier: Apache-2.0
//
// The folder that a bug report takes beside the bundle (--output-dev-artifacts-dir): how to time
// every function, what the compiler decided, on what machine.
//
//   benchmark-flags.txt             flags of benchmark-module for the first function (IREE's
//   syntax) benchmark-flags.FUNCTION.txt    the same for each inputs/FUNCTION.N.npy           what
//   the flags name graph/NN-pass.txt               what each pass of the compiler changed
//   report.md, versions.txt         what was decided and why; of which program, on which machine
//   reproduce.sh                    checks a bundle and times it, from this folder and a bundle
//   alone
#pragma once

#include <filesystem>

#include "base/status.h"
#include "compiler/explain.h"

namespace tessera::cli {

/// Whether WriteDevArtifacts could write there: kAlreadyExists for a folder of somebody else's.
Status CheckDevFolder(const std::filesystem::path& folder);

/// `bundle`: the whole bundle that was compiled. `folder` may be absent, empty, or one that this
/// function made, whose files are replaced. kAlreadyExists for any other.
Status WriteDevArtifacts(const std::filesystem::path& folder, const std::filesystem::path& bundle,
                         const compiler::Explanation& explanation);

}  // namespace tessera::cli
