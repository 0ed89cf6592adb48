// SPDX-License-Identifier: Apache-2.0
#include "compiler/dry_run.h"

#include <algorithm>

#include "compiler/pipeline.h"
#include "compiler/weight_format.h"

namespace tessera::compiler {

Result<DryRun> MakeDryRun(const model::ModelSource& source, const CompileOptions& options) {
  TESSERA_RETURN_IF_ERROR(CheckQuantize(options.quantize));
  CompileInput input;
  input.source = &source;
  TESSERA_ASSIGN_OR_RETURN(Module module, MakeModule(input, options));
  std::vector<CompileReport::PassTime> times;
  TESSERA_RETURN_IF_ERROR(RunPipeline(CpuPipeline(), &module, &times));
  DryRun made{std::move(module.program), module.plan, std::move(module.notes), 0};
  for (const formats::ParameterEntry& entry : source.index.entries())
    made.largest_source = std::max(made.largest_source, entry.bytes);
  return made;
}

}  // namespace tessera::compiler
