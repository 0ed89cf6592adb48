// SPDX-License-Identifier: Apache-2.0
//
// Writes model.irpa of a CPU program: every weight packed as the kernels read it, in the order of
// the program, each at a multiple of 4096. Streams: a few pieces of about a megabyte a thread are
// held at a time. Several threads pack and write (the file grows out of order), the caller's
// hashes.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/status.h"
#include "bundle/manifest.h"
#include "compiler/compile.h"
#include "compiler/module.h"

namespace tessera::compiler {

/// Stages of the progress: the disk's own speed is not packing's.
inline constexpr std::string_view kPackingStage = "packing parameters";
inline constexpr std::string_view kSyncingStage = "syncing parameters";

/// The record of the finished, synced file; its hash is computed on the way. `module` has passed
/// the pipeline. Errors of the disk and of conversions, naming the weight.
Result<bundle::FileRecord> WriteCpuArchive(const Module& module, const std::filesystem::path& path,
                                           const ProgressFn& progress);

}  // namespace tessera::compiler
