// SPDX-License-Identifier: Apache-2.0
//
// Graph: one decoder model as data. Nodes are in SSA order: a node uses only earlier nodes and is
// one value. Nothing here says how to compute, on what, in which precision or where KV pages lie;
// that is the compiler's. Plain data: copy it freely, rewrite it in passes, Verify() (verify.h)
// after each. A graph made by Builder (builder.h) or ParseGraph (parse.h) has been verified.
//
// Example, as printed by PrintGraph (print.h):
//   %0 = tokens : i32[T]
//   %1 = parameter "token_embd.weight" : f32[512,64]
//   %2 = embed(%1, %0) : f32[T,64] @embedding
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "graph/op.h"
#include "tensor/shape.h"

namespace tessera::graph {

/// Index of a node, hence of its value.
struct ValueId {
  uint32_t index = 0;
  bool operator==(const ValueId&) const = default;
};

enum class Element : uint8_t { kF32, kI32 };

/// Element type and shape of a value.
struct ValueType {
  Element element = Element::kF32;
  /// Whether the outermost dimension is T, the tokens of the step. False only for parameters.
  bool per_token = false;
  /// The dimensions after T, or all of them. Never a zero or negative one.
  tensor::Shape dims;

  /// "f32[T,9,64]", "i32[T]", "f32[512,64]".
  std::string ToString() const;
  bool operator==(const ValueType&) const = default;
};

/// Which elements of a head form a pair (a, b) that rope turns: a' = a cos - b sin,
/// b' = a sin + b cos.
enum class RopeStyle : uint8_t {
  kHalf,         // (i, i + rotary_dim / 2): Hugging Face files, GGUF "neox"
  kInterleaved,  // (2i, 2i + 1): GGUF of the llama family
};

/// Rotary position embedding with all scaling resolved. Pair i turns by
/// position * inverse_frequency[i]; cos and sin are multiplied by attention_factor (yarn, else 1).
struct RopeTable {
  int64_t rotary_dim = 0;  // Even; elements of a head from rotary_dim on stay as they are.
  RopeStyle style = RopeStyle::kHalf;
  std::vector<double> inverse_frequency;  // [rotary_dim / 2], radians per position
  double attention_factor = 1.0;

  bool operator==(const RopeTable&) const = default;
};

// Attributes. Ops that are not listed have none.

struct ParameterAttrs {
  std::string name;  // In the parameter index; one node per name.
  bool operator==(const ParameterAttrs&) const = default;
};
struct RmsNormAttrs {
  double eps = 0;
  bool operator==(const RmsNormAttrs&) const = default;
};
struct SplitHeadsAttrs {
  int64_t heads = 0;
  bool operator==(const SplitHeadsAttrs&) const = default;
};
struct RopeAttrs {
  uint32_t table = 0;  // Index into Graph::rope_tables.
  bool operator==(const RopeAttrs&) const = default;
};
/// Query head h uses KV head h / (heads / kv_heads). With window w a token at position p sees
/// positions (p - w, p], w of them; without, [0, p]. Scores are q . k * scale, then
/// softcap(scores) if given, then softmax.
struct AttentionAttrs {
  int64_t layer = 0;     // Which KV cache: 0, 1, ... in the order of the attention nodes.
  int64_t heads = 0;     // H
  int64_t kv_heads = 0;  // G, divides H
  int64_t head_dim = 0;  // D
  double scale = 0;      // Usually 1 / sqrt(D)
  std::optional<int64_t> window = std::nullopt;
  std::optional<double> softcap = std::nullopt;
  bool operator==(const AttentionAttrs&) const = default;
};
struct ScaleAttrs {
  double factor = 1;
  bool operator==(const ScaleAttrs&) const = default;
};
struct SoftcapAttrs {
  double cap = 0;
  bool operator==(const SoftcapAttrs&) const = default;
};

using Attributes = std::variant<std::monostate, ParameterAttrs, RmsNormAttrs, SplitHeadsAttrs,
                                RopeAttrs, AttentionAttrs, ScaleAttrs, SoftcapAttrs>;

struct Node {
  Op op = Op::kTokens;
  std::vector<ValueId> inputs;
  Attributes attrs;
  ValueType type;
  /// What people call the value, "layer3.attn_norm", or empty. Unique in the graph; for messages,
  /// traces and profiles, never for meaning. [A-Za-z0-9_.] only.
  std::string label;

  /// The attributes of this op. CHECKs that `A` is the kind that the op has.
  template <class A>
  const A& As() const {
    const A* attributes = std::get_if<A>(&attrs);
    TESSERA_CHECK(attributes != nullptr);
    return *attributes;
  }
  bool operator==(const Node&) const = default;
};

struct Graph {
  std::string name;  // Model family, for people. [A-Za-z0-9_.-] only.
  std::vector<RopeTable> rope_tables;
  std::vector<Node> nodes;  // The last one is the output.

  const Node& node(ValueId id) const { return nodes[id.index]; }
  /// The node that computes input `i` of `user`.
  const Node& input(const Node& user, size_t i) const { return node(user.inputs[i]); }
  bool operator==(const Graph&) const = default;
};

/// Null when no node has that label.
const Node* FindLabel(const Graph& graph, std::string_view label);
/// Attention nodes, that is: KV caches of a sequence.
int64_t LayerCount(const Graph& graph);
/// Ids of the nodes that use each node, in order: [nodes.size()].
std::vector<std::vector<ValueId>> Users(const Graph& graph);

}  // namespace tessera::graph
