// SPDX-License-Identifier: Apache-2.0
#include "compiler/pipeline.h"

#include <fmt/format.h>

#include <array>

#include "base/clock.h"
#include "bundle/program_verify.h"
#include "compiler/passes/passes.h"
#include "graph/verify.h"

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

constexpr std::array<Pass, 8> kCpuPasses = {{
    {"verify-graph", "the graph keeps the rules of its IR", VerifyGraph, GraphHolds},
    {"unify-rope-style", "rotary pairs become half-split by reordering rows", UnifyRopeStyle,
     GraphHolds},
    {"match-layers", "recognises embedding, layers and head", MatchLayers, GraphHolds},
    {"fuse-weights", "joins q/k/v and gate/up, chooses formats", FuseWeights, RecipesHold},
    {"assign-segments", "fixes the order of sums that tensor parallelism may cut", AssignSegments,
     RecipesHold},
    {"lower-steps", "writes buffers and fused steps", LowerSteps, ProgramHolds},
    {"choose-kernels", "asks the catalog", ChooseKernels, ProgramHolds},
    {"plan-memory", "adds up what serving needs", PlanMemory, ProgramHolds},
}};

}  // namespace

std::span<const Pass> CpuPipeline() {
  return kCpuPasses;
}

Status RunPipeline(std::span<const Pass> passes, Module* module,
                   std::vector<CompileReport::PassTime>* times) {
  for (const Pass& pass : passes) {
    const TimePoint start = Clock::Real().Now();
    TESSERA_RETURN_IF_ERROR(pass.run(module).WithContext(fmt::format("pass {}", pass.name)));
    TESSERA_RETURN_IF_ERROR(
        pass.verify(*module).WithContext(fmt::format("after pass {}", pass.name)));
    times->push_back({std::string(pass.name), Seconds(Clock::Real().Now() - start)});
  }
  return {};
}

}  // namespace tessera::compiler
