// SPDX-License-Identifier: Apache-2.0
#include "compiler/pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "bundle/limits.h"
#include "bundle/program_verify.h"
#include "compiler/passes/passes.h"
#include "graph/verify.h"
#include "model/build.h"

namespace tessera::compiler {
namespace {

Status GraphHolds(const Module& module) {
  return graph::Verify(module.graph);
}

Status RecipesHold(const Module& module) {
  if (module.recipes.size() != module.program.weights.size())
    return Internal("a weight without recipe");
  for (size_t i = 0; i < module.recipes.size(); ++i) {
    const bundle::Weight& weight = module.program.weights[i];
    const int64_t rows = CountRows(module.recipes[i].runs);
    const bool vector = weight.layout == bundle::WeightLayout::kRows && weight.n == 1;
    if (rows != (vector ? weight.k : weight.n))
      return Internal(fmt::format("weight {}: its recipe lists {} rows of {}", weight.entry, rows,
                                  vector ? weight.k : weight.n));
  }
  return {};
}

Status ProgramHolds(const Module& module) {
  TESSERA_RETURN_IF_ERROR(RecipesHold(module));
  return bundle::VerifyProgram(module.program);
}

constexpr std::array<Pass, 10> kCpuPasses = {{
    {"verify-graph", "the graph keeps the rules of its IR", VerifyGraph, GraphHolds},
    {"unify-rope-style", "rotary pairs become half-split by reordering rows", UnifyRopeStyle,
     GraphHolds},
    {"match-layers", "recognises embedding, layers and head", MatchLayers, GraphHolds},
    {"choose-formats", "asks which format holds each matrix", ChooseFormats, GraphHolds},
    {"join-projections", "marks q/k/v and gate/up of one format", JoinProjections, JoinsHold, true},
    {"fuse-weights", "lists the weights: rows, order, formats", FuseWeights, RecipesHold},
    {"assign-segments", "fixes the order of sums that tensor parallelism may cut", AssignSegments,
     RecipesHold},
    {"lower-steps", "writes buffers and fused steps", LowerSteps, ProgramHolds},
    {"choose-kernels", "asks the catalog", ChooseKernels, ProgramHolds, true},
    {"plan-memory", "adds up what serving needs", PlanMemory, ProgramHolds},
}};

}  // namespace

std::span<const Pass> CpuPipeline() {
  return kCpuPasses;
}

Status CheckDisabledPasses(std::span<const std::string> names) {
  std::vector<std::string_view> optional;
  for (const Pass& pass : kCpuPasses)
    if (pass.optional) optional.push_back(pass.name);
  for (const std::string& name : names)
    if (std::ranges::find(optional, name) == optional.end())
      return InvalidArgument(fmt::format("\"{:.40}\" is no pass that can be switched off: {}", name,
                                         fmt::join(optional, ", ")));
  return {};
}

Result<Module> MakeModule(const CompileInput& input, const CompileOptions& options) {
  Module module;
  TESSERA_ASSIGN_OR_RETURN(module.graph,
                           model::BuildGraph(input.source->config, input.source->index));
  module.index = &input.source->index;
  module.options = options;
  TESSERA_ASSIGN_OR_RETURN(
      module.max_seq_len,
      ContextLength(options.max_seq_len,
                    std::min(input.source->config.context_length, bundle::kMaxContext)));
  return module;
}

Status RunPipeline(std::span<const Pass> passes, Module* module,
                   std::vector<CompileReport::PassTime>* times, const PassFn& after) {
  const std::vector<std::string>& disabled = module->options.disabled_passes;
  for (const Pass& pass : passes) {
    if (std::ranges::find(disabled, pass.name) != disabled.end()) continue;
    const TimePoint start = Clock::Real().Now();
    TESSERA_RETURN_IF_ERROR(pass.run(module).WithContext(fmt::format("pass {}", pass.name)));
    TESSERA_RETURN_IF_ERROR(
        pass.verify(*module).WithContext(fmt::format("after pass {}", pass.name)));
    times->push_back({std::string(pass.name), Seconds(Clock::Real().Now() - start)});
    if (after) after(pass, *module);
  }
  return {};
}

}  // namespace tessera::compiler
