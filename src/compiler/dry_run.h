// SPDX-License-Identifier: Apache-2.0
//
// What Compile() would make, from headers alone: the program with every weight's format and size.
// Reads no parameter, writes nothing. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "bundle/manifest.h"
#include "bundle/program.h"
#include "compiler/compile.h"
#include "compiler/targets/cpu/archive.h"
#include "model/open.h"

namespace tessera::compiler {

struct DryRun {
  bundle::Program program;
  bundle::MemoryPlan memory;
  std::vector<std::string> notes;
  ArchiveNeeds needs;    // Of writing the parameters.
  bool is_exact = true;  // No weight is rounded, so nothing is to be certified.
};

/// Errors of the pipeline, of options, and of a number of ranks that the model does not divide
/// into.
Result<DryRun> MakeDryRun(const model::ModelSource& source, const CompileOptions& options);

}  // namespace tessera::compiler
