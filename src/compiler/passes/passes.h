// SPDX-License-Identifier: Apache-2.0
//
// The passes, one a file. Each takes the module as the pass before left it; pipeline.cc has the
// order and what is verified after each.
#pragma once

#include "base/status.h"
#include "compiler/module.h"

namespace tessera::compiler {

/// The graph is what graph/verify.h calls valid.
Status VerifyGraph(Module* module);

/// Interleaved rotary pairs become half-split ones by reordering the rows of the q and k
/// projections (and their biases and head norms): the only style the kernels have.
Status UnifyRopeStyle(Module* module);

/// Recognises the decoder: embedding, layers of attention and gated ffn, head. kUnimplemented
/// names the value that does not fit.
Status MatchLayers(Module* module);

/// Decides in which format each matrix is stored.
Status ChooseFormats(Module* module);

/// Marks the projections that become one matrix: q/k/v and gate/up of one format. Optional.
Status JoinProjections(Module* module);
/// Whether only projections of one format are joined.
Status JoinsHold(const Module& module);

/// Decides every weight of the program: its tensors, in which order of rows, in which format.
Status FuseWeights(Module* module);

/// Splits the inputs of the output and down projections into segments: fixed by the model, never by
/// the degree of tensor parallelism, so that tp1, tp2 and tp8 add in the same order.
Status AssignSegments(Module* module);
/// Whether a model of so many KV heads may get more segments than there can be ranks. Bundles of
/// such models from before that was so must not be taken for new ones.
bool HasManySegments(int64_t kv_heads);

/// Writes buffers and steps.
Status LowerSteps(Module* module);

/// Notes the catalog's kernels for the machines that the target means. Optional: the runtime
/// resolves them for its own machine.
Status ChooseKernels(Module* module);

/// Memory that serving needs.
Status PlanMemory(Module* module);

}  // namespace tessera::compiler
