// SPDX-License-Identifier: Apache-2.0
#include "graph/builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/infer.h"
#include "graph/verify.h"

namespace tessera::graph {

ValueId Builder::Append(Op op, std::vector<ValueId> inputs, Attributes attrs, std::string label,
                        ValueType declared) {
  const ValueId id{static_cast<uint32_t>(graph_.nodes.size())};
  Node node{.op = op,
            .inputs = std::move(inputs),
            .attrs = std::move(attrs),
            .type = std::move(declared),
            .label = std::move(label)};
  if (error_.ok()) {
    // After a first error the types of its users are meaningless, and so would be their errors.
    Result<ValueType> type = InferType(graph_, node);
    if (type.has_value()) node.type = *std::move(type);
    error_ = StatusOf(type);
    graph_.nodes.push_back(std::move(node));
    error_ = std::move(error_).WithContext(Describe(graph_, id));
  } else {
    graph_.nodes.push_back(std::move(node));
  }
  return id;
}

ValueId Builder::Tokens() {
  if (!tokens_) tokens_ = Append(Op::kTokens, {}, {}, {});
  return *tokens_;
}

ValueId Builder::Positions() {
  if (!positions_) positions_ = Append(Op::kPositions, {}, {}, {});
  return *positions_;
}

ValueId Builder::Parameter(const std::string& name, const tensor::Shape& shape) {
  const auto found = parameters_.find(name);
  if (found == parameters_.end()) {
    ValueType type{.element = Element::kF32, .per_token = false, .dims = shape};
    const ValueId id = Append(Op::kParameter, {}, ParameterAttrs{name}, {}, std::move(type));
    parameters_.emplace(name, id);
    return id;
  }
  const tensor::Shape& first = graph_.node(found->second).type.dims;
  if (first != shape && error_.ok()) {
    error_ = InvalidArgument(fmt::format("parameter \"{}\" is used as {} and as {}", name,
                                         first.ToString(), shape.ToString()));
  }
  return found->second;
}

uint32_t Builder::AddRopeTable(const RopeTable& table) {
  auto& tables = graph_.rope_tables;
  const auto found = std::find(tables.begin(), tables.end(), table);
  const auto index = static_cast<uint32_t>(found - tables.begin());
  if (found == tables.end()) tables.push_back(table);
  return index;
}

ValueId Builder::Embed(ValueId table, std::string label) {
  return Append(Op::kEmbed, {table, Tokens()}, {}, std::move(label));
}

ValueId Builder::RmsNorm(ValueId x, ValueId weight, double eps, std::string label) {
  return Append(Op::kRmsNorm, {x, weight}, RmsNormAttrs{eps}, std::move(label));
}

ValueId Builder::Linear(ValueId x, ValueId weight, std::optional<ValueId> bias, std::string label) {
  std::vector<ValueId> inputs{x, weight};
  if (bias) inputs.push_back(*bias);
  return Append(Op::kLinear, std::move(inputs), {}, std::move(label));
}

ValueId Builder::SplitHeads(ValueId x, int64_t heads, std::string label) {
  return Append(Op::kSplitHeads, {x}, SplitHeadsAttrs{heads}, std::move(label));
}

ValueId Builder::MergeHeads(ValueId x, std::string label) {
  return Append(Op::kMergeHeads, {x}, {}, std::move(label));
}

ValueId Builder::Rope(ValueId x, uint32_t table, std::string label) {
  return Append(Op::kRope, {x, Positions()}, RopeAttrs{table}, std::move(label));
}

ValueId Builder::Attention(ValueId q, ValueId k, ValueId v, const AttentionAttrs& attrs,
                           std::string label) {
  return Append(Op::kAttention, {q, k, v}, attrs, std::move(label));
}

ValueId Builder::Add(ValueId a, ValueId b, std::string label) {
  return Append(Op::kAdd, {a, b}, {}, std::move(label));
}

ValueId Builder::Mul(ValueId a, ValueId b, std::string label) {
  return Append(Op::kMul, {a, b}, {}, std::move(label));
}

ValueId Builder::Silu(ValueId x, std::string label) {
  return Append(Op::kSilu, {x}, {}, std::move(label));
}

ValueId Builder::GeluTanh(ValueId x, std::string label) {
  return Append(Op::kGeluTanh, {x}, {}, std::move(label));
}

ValueId Builder::Scale(ValueId x, double factor, std::string label) {
  return Append(Op::kScale, {x}, ScaleAttrs{factor}, std::move(label));
}

ValueId Builder::Softcap(ValueId x, double cap, std::string label) {
  return Append(Op::kSoftcap, {x}, SoftcapAttrs{cap}, std::move(label));
}

Result<Graph> Builder::Finish(ValueId logits) && {
  Append(Op::kOutput, {logits}, {}, {});
  if (!error_.ok()) return Fail(std::move(error_));
  TESSERA_RETURN_IF_ERROR(Verify(graph_));
  return std::move(graph_);
}

}  // namespace tessera::graph
