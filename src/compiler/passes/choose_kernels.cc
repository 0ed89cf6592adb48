// SPDX-License-Identifier: Apache-2.0
//
// Notes, for people and for the runtime's report, which kernel a machine of the target uses. Any
// machine can run the program: the packed layout has a scalar reference, with the same bits.
#include <fmt/format.h>

#include "compiler/passes/passes.h"
#include "kernels/catalog.h"

namespace tessera::compiler {
namespace {

/// What the target's machines have at least; "cpu" means this one.
Isa IsaOf(const std::string& target) {
  Isa isa;
  if (target == "cpu") return ReadIsa();
  isa.avx2 = target == "x86-64-v3" || target == "x86-64-v4";
  isa.avx512 = target == "x86-64-v4";
  return isa;
}

std::optional<bundle::WeightIndex> MatmulWeight(const bundle::Step& step) {
  if (const auto* qkv = std::get_if<bundle::QkvStep>(&step.op)) return qkv->q.weight;
  if (const auto* project = std::get_if<bundle::ProjectStep>(&step.op)) return project->weight;
  if (const auto* gated = std::get_if<bundle::GatedStep>(&step.op)) return gated->gate;
  if (const auto* head = std::get_if<bundle::HeadStep>(&step.op)) return head->weight;
  return std::nullopt;
}

}  // namespace

Status ChooseKernels(Module* module) {
  const Isa isa = IsaOf(module->options.target);
  for (bundle::Step& step : module->program.steps) {
    if (std::holds_alternative<bundle::AttentionStep>(step.op)) {
      const kernels::Entry* entry =
          kernels::Find(kernels::Op::kAttention, std::nullopt, kernels::RowsClass::kAny, isa);
      if (entry == nullptr) return Unimplemented("no attention kernel");
      step.kernel_one = step.kernel_many = entry->name;
    }
    const std::optional<bundle::WeightIndex> index = MatmulWeight(step);
    if (!index) continue;
    const bundle::Weight& weight = module->program.weights[static_cast<size_t>(*index)];
    const kernels::Entry* one = kernels::FindMatmul(weight.dtype, 1, isa);
    const kernels::Entry* many = kernels::FindMatmul(weight.dtype, 2, isa);
    if (one == nullptr || many == nullptr)
      return Unimplemented(fmt::format("no kernel multiplies {}", tensor::Name(weight.dtype)));
    step.kernel_one = one->name;
    step.kernel_many = many->name;
  }
  return {};
}

}  // namespace tessera::compiler
