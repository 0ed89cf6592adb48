// SPDX-License-Identifier: Apache-2.0
//
// Builder: appends nodes and infers their types. Calls never fail on their own; the first error is
// kept, later calls do nothing useful, and Finish() returns it. Single use, one thread.
//
//   Builder b("tiny");
//   ValueId x = b.Embed(b.Parameter("embed", {512, 64}), "embedding");
//   x = b.RmsNorm(x, b.Parameter("norm", {64}), 1e-5, "final_norm");
//   Result<Graph> graph = std::move(b).Finish(b.Linear(x, b.Parameter("head", {512, 64})));
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "graph/ir.h"

namespace tessera::graph {

class Builder {
 public:
  explicit Builder(std::string name) { graph_.name = std::move(name); }

  /// Made at the first call, then the same node.
  ValueId Tokens();
  ValueId Positions();
  /// The same name gives the same node; another shape for it is an error.
  ValueId Parameter(const std::string& name, const tensor::Shape& shape);
  /// An equal table gives the same index.
  uint32_t AddRopeTable(const RopeTable& table);

  ValueId Embed(ValueId table, std::string label = {});
  ValueId RmsNorm(ValueId x, ValueId weight, double eps, std::string label = {});
  ValueId Linear(ValueId x, ValueId weight, std::optional<ValueId> bias = std::nullopt,
                 std::string label = {});
  ValueId SplitHeads(ValueId x, int64_t heads, std::string label = {});
  ValueId MergeHeads(ValueId x, std::string label = {});
  ValueId Rope(ValueId x, uint32_t table, std::string label = {});
  ValueId Attention(ValueId q, ValueId k, ValueId v, const AttentionAttrs& attrs,
                    std::string label = {});
  ValueId Add(ValueId a, ValueId b, std::string label = {});
  ValueId Mul(ValueId a, ValueId b, std::string label = {});
  ValueId Silu(ValueId x, std::string label = {});
  ValueId GeluTanh(ValueId x, std::string label = {});
  ValueId Scale(ValueId x, double factor, std::string label = {});
  ValueId Softcap(ValueId x, double cap, std::string label = {});

  /// The type inferred so far; valid until the next call.
  const ValueType& type(ValueId id) const { return graph_.node(id).type; }

  /// Appends the output and verifies the whole. The first error of any call, if there was one.
  Result<Graph> Finish(ValueId logits) &&;

 private:
  ValueId Append(Op op, std::vector<ValueId> inputs, Attributes attrs, std::string label,
                 ValueType declared = {});

  Graph graph_;
  std::optional<ValueId> tokens_;
  std::optional<ValueId> positions_;
  std::unordered_map<std::string, ValueId> parameters_;
  Status error_;
};

}  // namespace tessera::graph
