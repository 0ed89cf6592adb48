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
#include "model/open.h"

namespace tessera::compiler {

struct DryRun {
  bundle::Program program;
  bundle::MemoryPlan memory;
  std::vector<std::string> notes;
  uint64_t largest_source = 0;  // Bytes of the largest tensor.
};

/// Errors of the pipeline.
Result<DryRun> MakeDryRun(const model::ModelSource& source, const CompileOptions& options);

}  // namespace tessera::compiler
