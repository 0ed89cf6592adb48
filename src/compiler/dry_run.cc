// SPDX-License-Identifier: Apache-2.0
#include "compiler/dry_run.h"

#include <algorithm>

#include "compiler/pipeline.h"
#include "compiler/targets/cpu/shards.h"

namespace tessera::compiler {

Result<DryRun> MakeDryRun(const model::ModelSource& source, const CompileOptions& options) {
  TESSERA_RETURN_IF_ERROR(CheckOptions(options));
  CompileInput input;
  input.source = &source;
  TESSERA_ASSIGN_OR_RETURN(Module module, MakeModule(input, options));
  std::vector<CompileReport::PassTime> times;
  TESSERA_RETURN_IF_ERROR(RunPipeline(CpuPipeline(), &module, &times));
  TESSERA_ASSIGN_OR_RETURN(const std::vector<Archive> archives, ArchivesOf(module));
  DryRun made;
  TESSERA_ASSIGN_OR_RETURN(made.needs, NeedsOf(source.index, archives));
  made.is_exact =
      std::ranges::all_of(module.formats, [](const auto& item) { return item.second.is_exact; });
  made.program = std::move(module.program);
  made.memory = module.plan;
  made.notes = std::move(module.notes);
  return made;
}

}  // namespace tessera::compiler
