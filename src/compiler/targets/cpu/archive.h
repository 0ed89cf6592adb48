// SPDX-License-Identifier: Apache-2.0
//
// Writes model.irpa of a CPU program: every weight packed as the kernels read it, in the order of
// the program, each at a multiple of 4096. Streams: holds a few megabytes at a time.
#pragma once

#include <filesystem>

#include "base/status.h"
#include "bundle/manifest.h"
#include "compiler/compile.h"
#include "compiler/module.h"

namespace tessera::compiler {

/// The record of the finished, synced file; its hash is computed on the way. `module` has passed
/// the pipeline. Errors of the disk and of conversions, naming the weight.
Result<bundle::FileRecord> WriteCpuArchive(const Module& module, const std::filesystem::path& path,
                                           const ProgressFn& progress);

}  // namespace tessera::compiler
