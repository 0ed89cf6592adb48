// SPDX-License-Identifier: Apache-2.0
//
// The pipeline: the list of passes, in order. Each is named, timed and verified after; some
// can be switched off, to find the one that a wrong result comes from.
#pragma once

#include <functional>
#include <span>
#include <string>
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
  /// May be switched off (CompileOptions::disabled_passes): the tokens stay the same.
  bool optional = false;
};

/// The passes of the CPU target.
std::span<const Pass> CpuPipeline();

/// Whether each name is an optional pass of the CPU target; kInvalidArgument lists those there are.
Status CheckDisabledPasses(std::span<const std::string> names);

/// A module of the source's graph, for the passes.
Result<Module> MakeModule(const CompileInput& input, const CompileOptions& options);

/// Called after each pass that ran.
using PassFn = std::function<void(const Pass&, const Module&)>;

/// Runs all that the module's options do not switch off. An error's context names the pass.
Status RunPipeline(std::span<const Pass> passes, Module* module,
                   std::vector<CompileReport::PassTime>* times, const PassFn& after = {});

}  // namespace tessera::compiler
