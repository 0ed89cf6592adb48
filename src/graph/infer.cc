// SPDX-License-Identifier: Apache-2.0
#include "graph/infer.h"

#include <fmt/format.h>

#include <cmath>

#include "graph/limits.h"

namespace tessera::graph {
namespace {

Status Expected(std::string_view what, const ValueType& got) {
  return InvalidArgument(fmt::format("expected {}, got {}", what, got.ToString()));
}

/// An f32 value of each token with `rank` dimensions after T.
Status NeedActivation(const ValueType& type, int rank, std::string_view what) {
  const bool fits = type.element == Element::kF32 && type.per_token && type.dims.rank() == rank;
  return fits ? Status() : Expected(what, type);
}

/// A weight of exactly these dimensions.
Status NeedWeight(const ValueType& type, const tensor::Shape& dims, std::string_view what) {
  const ValueType want{.element = Element::kF32, .per_token = false, .dims = dims};
  return type == want ? Status() : Expected(fmt::format("{} {}", what, want.ToString()), type);
}

Status NeedTokenIndex(const ValueType& type, std::string_view what) {
  const ValueType want{.element = Element::kI32, .per_token = true, .dims = {}};
  return type == want ? Status() : Expected(fmt::format("{} i32[T]", what), type);
}

Status NeedPositive(double value, std::string_view what) {
  if (std::isfinite(value) && value > 0) return {};
  return InvalidArgument(fmt::format("{} is {}, expected a positive number", what, value));
}

ValueType Activation(tensor::Shape dims) {
  return {.element = Element::kF32, .per_token = true, .dims = std::move(dims)};
}

Status CheckDims(const tensor::Shape& dims) {
  if (dims.rank() > kMaxRank) {
    return InvalidArgument(fmt::format("{} dimensions, at most {}", dims.rank(), kMaxRank));
  }
  for (const int64_t dim : dims.dims()) {
    if (dim < 1 || dim > kMaxDimension) {
      return InvalidArgument(fmt::format("dimension {}, expected 1 to {}", dim, kMaxDimension));
    }
  }
  return StatusOf(dims.Elements());
}

using Types = std::vector<ValueType>;  // Of a node's inputs.

Result<ValueType> InferParameter(const Node& node) {
  const std::string& name = node.As<ParameterAttrs>().name;
  if (name.empty() || name.size() > kMaxNameBytes) {
    return Fail(InvalidArgument(
        fmt::format("parameter name of {} bytes, expected 1 to {}", name.size(), kMaxNameBytes)));
  }
  if (node.type.element != Element::kF32 || node.type.per_token) {
    return Fail(Expected("a parameter's type, f32[...] without T", node.type));
  }
  TESSERA_RETURN_IF_ERROR(CheckDims(node.type.dims));
  return node.type;
}

Result<ValueType> InferEmbed(const Types& in) {
  if (in[0].element != Element::kF32 || in[0].per_token || in[0].dims.rank() != 2) {
    return Fail(Expected("a table f32[V,D]", in[0]));
  }
  TESSERA_RETURN_IF_ERROR(NeedTokenIndex(in[1], "tokens"));
  return Activation({in[0].dims[1]});
}

Result<ValueType> InferRmsNorm(const Node& node, const Types& in) {
  if (in[0].element != Element::kF32 || !in[0].per_token || in[0].dims.rank() < 1) {
    return Fail(Expected("x f32[T,...,N]", in[0]));
  }
  TESSERA_RETURN_IF_ERROR(NeedWeight(in[1], {in[0].dims.columns()}, "weight"));
  const double eps = node.As<RmsNormAttrs>().eps;
  if (!std::isfinite(eps) || eps < 0) {
    return Fail(InvalidArgument(fmt::format("eps is {}, expected a number >= 0", eps)));
  }
  return in[0];
}

Result<ValueType> InferLinear(const Types& in) {
  TESSERA_RETURN_IF_ERROR(NeedActivation(in[0], 1, "x f32[T,K]"));
  const ValueType& weight = in[1];
  if (weight.element != Element::kF32 || weight.per_token || weight.dims.rank() != 2 ||
      weight.dims[1] != in[0].dims[0]) {
    return Fail(Expected(fmt::format("weight f32[N,{}]", in[0].dims[0]), weight));
  }
  const int64_t rows = weight.dims[0];
  if (in.size() == 3) TESSERA_RETURN_IF_ERROR(NeedWeight(in[2], {rows}, "bias"));
  return Activation({rows});
}

Result<ValueType> InferSplitHeads(const Node& node, const Types& in) {
  TESSERA_RETURN_IF_ERROR(NeedActivation(in[0], 1, "x f32[T,H*D]"));
  const int64_t heads = node.As<SplitHeadsAttrs>().heads;
  const int64_t width = in[0].dims[0];
  if (heads < 1 || width % heads != 0) {
    return Fail(InvalidArgument(fmt::format("{} heads do not divide width {}", heads, width)));
  }
  return Activation({heads, width / heads});
}

Result<ValueType> InferMergeHeads(const Types& in) {
  TESSERA_RETURN_IF_ERROR(NeedActivation(in[0], 2, "x f32[T,H,D]"));
  const tensor::Shape merged{in[0].dims.elements()};
  TESSERA_RETURN_IF_ERROR(CheckDims(merged));
  return Activation(merged);
}

Result<ValueType> InferRope(const Graph& graph, const Node& node, const Types& in) {
  TESSERA_RETURN_IF_ERROR(NeedActivation(in[0], 2, "x f32[T,H,D]"));
  TESSERA_RETURN_IF_ERROR(NeedTokenIndex(in[1], "positions"));
  const uint32_t table = node.As<RopeAttrs>().table;
  if (table >= graph.rope_tables.size()) {
    return Fail(InvalidArgument(
        fmt::format("rope table {}, but the graph has {}", table, graph.rope_tables.size())));
  }
  const int64_t rotary_dim = graph.rope_tables[table].rotary_dim;
  if (rotary_dim > in[0].dims[1]) {
    return Fail(InvalidArgument(
        fmt::format("rotary_dim {} exceeds head dimension {}", rotary_dim, in[0].dims[1])));
  }
  return in[0];
}

Result<ValueType> InferAttention(const Node& node, const Types& in) {
  const AttentionAttrs& a = node.As<AttentionAttrs>();
  if (a.layer < 0) {
    return Fail(InvalidArgument(fmt::format("layer is {}, expected >= 0", a.layer)));
  }
  if (a.heads < 1 || a.kv_heads < 1 || a.heads % a.kv_heads != 0) {
    return Fail(
        InvalidArgument(fmt::format("kv_heads {} does not divide heads {}", a.kv_heads, a.heads)));
  }
  TESSERA_RETURN_IF_ERROR(NeedPositive(a.scale, "scale"));
  if (a.softcap) TESSERA_RETURN_IF_ERROR(NeedPositive(*a.softcap, "softcap"));
  if (a.window && *a.window < 1) {
    return Fail(InvalidArgument(fmt::format("window is {}, expected >= 1", *a.window)));
  }
  const ValueType q = Activation({a.heads, a.head_dim});
  const ValueType kv = Activation({a.kv_heads, a.head_dim});
  if (in[0] != q) return Fail(Expected(fmt::format("q {}", q.ToString()), in[0]));
  if (in[1] != kv) return Fail(Expected(fmt::format("k {}", kv.ToString()), in[1]));
  if (in[2] != kv) return Fail(Expected(fmt::format("v {}", kv.ToString()), in[2]));
  const tensor::Shape merged{a.heads * a.head_dim};
  TESSERA_RETURN_IF_ERROR(CheckDims(merged));
  return Activation(merged);
}

Result<ValueType> InferElementwise(const Node& node, const Types& in) {
  for (const ValueType& type : in) {
    if (type.element != Element::kF32 || !type.per_token) {
      return Fail(Expected("f32[T,...]", type));
    }
    if (type != in[0]) return Fail(Expected(in[0].ToString() + " as the first input", type));
  }
  if (node.op == Op::kScale && !std::isfinite(node.As<ScaleAttrs>().factor)) {
    return Fail(InvalidArgument("factor is not finite"));
  }
  if (node.op == Op::kSoftcap) {
    TESSERA_RETURN_IF_ERROR(NeedPositive(node.As<SoftcapAttrs>().cap, "cap"));
  }
  return in[0];
}

/// Index of the alternative of Attributes that an op carries.
size_t AttributeKind(Op op) {
  switch (op) {
    case Op::kParameter:
      return Attributes(ParameterAttrs{}).index();
    case Op::kRmsNorm:
      return Attributes(RmsNormAttrs{}).index();
    case Op::kSplitHeads:
      return Attributes(SplitHeadsAttrs{}).index();
    case Op::kRope:
      return Attributes(RopeAttrs{}).index();
    case Op::kAttention:
      return Attributes(AttentionAttrs{}).index();
    case Op::kScale:
      return Attributes(ScaleAttrs{}).index();
    case Op::kSoftcap:
      return Attributes(SoftcapAttrs{}).index();
    case Op::kTokens:
    case Op::kPositions:
    case Op::kEmbed:
    case Op::kLinear:
    case Op::kMergeHeads:
    case Op::kAdd:
    case Op::kMul:
    case Op::kSilu:
    case Op::kGeluTanh:
    case Op::kOutput:
      return 0;
  }
  TESSERA_CHECK(false);
}

Result<Types> InputTypes(const Graph& graph, const Node& node) {
  const OpInfo& info = Info(node.op);
  if (node.inputs.size() < info.min_inputs || node.inputs.size() > info.max_inputs) {
    return Fail(InvalidArgument(fmt::format("{} inputs, expected {} to {}", node.inputs.size(),
                                            info.min_inputs, info.max_inputs)));
  }
  Types types;
  for (const ValueId id : node.inputs) {
    TESSERA_CHECK(id.index < graph.nodes.size());
    types.push_back(graph.node(id).type);
  }
  return types;
}

}  // namespace

Status CheckRopeTable(const RopeTable& table) {
  if (table.rotary_dim < 2 || table.rotary_dim % 2 != 0 || table.rotary_dim > kMaxRotaryDim) {
    return InvalidArgument(fmt::format("rotary_dim is {}, expected an even number from 2 to {}",
                                       table.rotary_dim, kMaxRotaryDim));
  }
  const size_t pairs = static_cast<size_t>(table.rotary_dim / 2);
  if (table.inverse_frequency.size() != pairs) {
    return InvalidArgument(
        fmt::format("{} inverse frequencies, expected {}", table.inverse_frequency.size(), pairs));
  }
  for (const double frequency : table.inverse_frequency) {
    if (!std::isfinite(frequency) || frequency < 0) {
      return InvalidArgument(
          fmt::format("inverse frequency {}, expected a number >= 0", frequency));
    }
  }
  return NeedPositive(table.attention_factor, "attention_factor");
}

Result<ValueType> InferType(const Graph& graph, const Node& node) {
  TESSERA_ASSIGN_OR_RETURN(const Types in, InputTypes(graph, node));
  if (node.attrs.index() != AttributeKind(node.op)) {
    return Fail(InvalidArgument("attributes of another op"));
  }
  switch (node.op) {
    case Op::kTokens:
    case Op::kPositions:
      return ValueType{.element = Element::kI32, .per_token = true, .dims = {}};
    case Op::kParameter:
      return InferParameter(node);
    case Op::kEmbed:
      return InferEmbed(in);
    case Op::kRmsNorm:
      return InferRmsNorm(node, in);
    case Op::kLinear:
      return InferLinear(in);
    case Op::kSplitHeads:
      return InferSplitHeads(node, in);
    case Op::kMergeHeads:
      return InferMergeHeads(in);
    case Op::kRope:
      return InferRope(graph, node, in);
    case Op::kAttention:
      return InferAttention(node, in);
    case Op::kAdd:
    case Op::kMul:
    case Op::kSilu:
    case Op::kGeluTanh:
    case Op::kScale:
    case Op::kSoftcap:
      return InferElementwise(node, in);
    case Op::kOutput:
      TESSERA_RETURN_IF_ERROR(NeedActivation(in[0], 1, "logits f32[T,V]"));
      return in[0];
  }
  return Fail(InvalidArgument("no such op"));
}

}  // namespace tessera::graph
