// SPDX-License-Identifier: Apache-2.0
//
// Projections that read the same rows are one matrix where their formats agree: one pass over the
// rows, one barrier less. They stay apart where a file mixes formats (Q4_K_M keeps v in Q6_K).
// Optional: a row's sums do not depend on which matrix holds it.
#include "compiler/passes/passes.h"

namespace tessera::compiler {
namespace {

bool ShareAFormat(const Module& module, std::initializer_list<const MatchedLinear*> all) {
  std::optional<tensor::DType> first;
  for (const MatchedLinear* linear : all) {
    const tensor::DType dtype = module.formats.at(linear->weight).dtype;
    if (first.value_or(dtype) != dtype) return false;
    first = dtype;
  }
  return true;
}

}  // namespace

Status JoinProjections(Module* module) {
  for (MatchedLayer& layer : module->matched.layers) {
    layer.join_qkv = ShareAFormat(*module, {&layer.q, &layer.k, &layer.v});
    layer.join_gate_up = ShareAFormat(*module, {&layer.gate, &layer.up});
  }
  return {};
}

Status JoinsHold(const Module& module) {
  for (const MatchedLayer& layer : module.matched.layers) {
    const bool qkv = ShareAFormat(module, {&layer.q, &layer.k, &layer.v});
    const bool gate_up = ShareAFormat(module, {&layer.gate, &layer.up});
    if ((layer.join_qkv && !qkv) || (layer.join_gate_up && !gate_up))
      return Internal("projections of different formats are joined");
  }
  return {};
}

}  // namespace tessera::compiler
