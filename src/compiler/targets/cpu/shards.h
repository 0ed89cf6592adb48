// SPDX-License-Identifier: Apache-2.0
//
// Shards: which weights go into which archive of a bundle. One rank: all into model.irpa. More:
// what every rank reads into model.irpa, and each rank's part of the others into its own file.
#pragma once

#include <vector>

#include "base/status.h"
#include "compiler/module.h"
#include "compiler/targets/cpu/archive.h"

namespace tessera::compiler {

/// `module` has passed the pipeline. kInvalidArgument, in one sentence with what works, when its
/// options ask for a number of ranks that the model does not divide into (bundle/shard.h).
Result<std::vector<Archive>> ArchivesOf(const Module& module);

}  // namespace tessera::compiler
