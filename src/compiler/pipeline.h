// SPDX-License-Identifier: Apache-2.0
//
// The pipeline: the list of passes, in order. Each is named, timed and verified after.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/compile.h"
#include "compiler/module.h"

namespace tessera::compiler {

struct Pass {
  std::string_view name;
  std::string_view does;  // One line, for `--help` and reports.
  Status (*run)(Module*);
  /// What must hold afterwards.
  Status (*verify)(const Module&);
};

/// The passes of the CPU target.
std::span<const Pass> CpuPipeline();

/// Runs them all. An error's context names the pass.
Status RunPipeline(std::span<const Pass> passes, Module* module,
                   std::vector<CompileReport::PassTime>* times);

}  // namespace tessera::compiler
