// SPDX-License-Identifier: Apache-2.0
//
// Op: the closed list of what a model graph can compute. Shapes: T = tokens of the step, others are
// constants; all arithmetic means real numbers (activations are f32), how exactly an op is computed
// is the target's business and the interpreter's is the reference. A new op needs: a row here, a
// type rule (infer.cc), its text form (print.cc, parse.cc), its meaning (interpreter_ops.cc).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera::graph {

enum class Op : uint8_t {
  // Inputs.
  kTokens,     // -> i32 [T]: token ids.
  kPositions,  // -> i32 [T]: position of each token in its sequence, from 0.
  kParameter,  // -> f32 [d0,...]: a weight by its name in the parameter index.
  // Per token.
  kEmbed,       // table [V,D], tokens [T] -> [T,D]: rows of the table.
  kRmsNorm,     // x [T,...,N], weight [N] -> same as x: x / sqrt(mean(x^2) + eps) * weight.
  kLinear,      // x [T,K], weight [N,K], bias [N]? -> [T,N]: x * weight^T + bias.
  kSplitHeads,  // x [T,H*D] -> [T,H,D]
  kMergeHeads,  // x [T,H,D] -> [T,H*D]
  kRope,        // x [T,H,D], positions [T] -> same as x: rotates pairs of the first rotary_dim
                // elements by position * frequency; see RopeTable in ir.h.
  // Over the sequence.
  kAttention,  // q [T,H,D], k [T,G,D], v [T,G,D] -> [T,H*D]: causal attention over the keys and
               // values of the whole sequence so far, this step's included; see AttentionAttrs.
  // Elementwise.
  kAdd,       // a, b of one type -> same
  kMul,       // a, b of one type -> same
  kSilu,      // x / (1 + exp(-x))
  kGeluTanh,  // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  kScale,     // x * factor
  kSoftcap,   // cap * tanh(x / cap)
  // The end.
  kOutput,  // logits [T,V] -> same; exactly one, the last node.
};

struct OpInfo {
  Op op;
  std::string_view name;  // In the text form.
  uint8_t min_inputs;
  uint8_t max_inputs;
};

inline constexpr std::array<OpInfo, 17> kOps = {{
    {Op::kTokens, "tokens", 0, 0},
    {Op::kPositions, "positions", 0, 0},
    {Op::kParameter, "parameter", 0, 0},
    {Op::kEmbed, "embed", 2, 2},
    {Op::kRmsNorm, "rms_norm", 2, 2},
    {Op::kLinear, "linear", 2, 3},
    {Op::kSplitHeads, "split_heads", 1, 1},
    {Op::kMergeHeads, "merge_heads", 1, 1},
    {Op::kRope, "rope", 2, 2},
    {Op::kAttention, "attention", 3, 3},
    {Op::kAdd, "add", 2, 2},
    {Op::kMul, "mul", 2, 2},
    {Op::kSilu, "silu", 1, 1},
    {Op::kGeluTanh, "gelu_tanh", 1, 1},
    {Op::kScale, "scale", 1, 1},
    {Op::kSoftcap, "softcap", 1, 1},
    {Op::kOutput, "output", 1, 1},
}};

/// Total.
constexpr const OpInfo& Info(Op op) {
  return kOps[static_cast<size_t>(op)];
}
constexpr std::string_view Name(Op op) {
  return Info(op).name;
}
/// Nothing when no op has that name.
constexpr std::optional<Op> FindOp(std::string_view name) {
  for (const OpInfo& info : kOps) {
    if (info.name == name) return info.op;
  }
  return std::nullopt;
}

static_assert([] {
  for (size_t i = 0; i < kOps.size(); ++i) {
    if (static_cast<size_t>(kOps[i].op) != i) return false;
  }
  return true;
}());

}  // namespace tessera::graph
