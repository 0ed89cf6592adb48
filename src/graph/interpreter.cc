// SPDX-License-Identifier: Apache-2.0
#include "graph/interpreter.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/interpreter_ops.h"
#include "graph/verify.h"

namespace tessera::graph {

Interpreter::Interpreter(const Graph& graph, WeightSource& weights)
    : graph_(graph),
      weights_(weights),
      last_use_(graph.nodes.size(), 0),
      values_(graph.nodes.size()),
      kv_(static_cast<size_t>(LayerCount(graph))) {
  TESSERA_CHECK(!graph.nodes.empty());
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId input : graph.nodes[i].inputs) last_use_[input.index] = i;
  }
}

void Interpreter::Reset() {
  std::fill(kv_.begin(), kv_.end(), KvCache{});
  position_ = 0;
}

Status Interpreter::LoadWeights() {
  std::vector<std::span<const float>> loaded(graph_.nodes.size());
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    if (node.op != Op::kParameter) continue;
    const std::string& name = node.As<ParameterAttrs>().name;
    TESSERA_ASSIGN_OR_RETURN(loaded[i], weights_.Load(name, node.type.dims));
    TESSERA_CHECK(static_cast<int64_t>(loaded[i].size()) == node.type.dims.elements());
  }
  loaded_ = std::move(loaded);
  return {};
}

Result<std::vector<double>> Interpreter::Run(std::span<const int32_t> tokens, Trace* trace) {
  if (tokens.empty()) return Fail(InvalidArgument("no tokens to run"));
  if (trace != nullptr) {
    for (const auto& [label, unused] : *trace) {
      if (FindLabel(graph_, label) == nullptr) {
        return Fail(InvalidArgument(fmt::format("the graph has no value '{}'", label)));
      }
    }
  }
  if (loaded_.empty()) TESSERA_RETURN_IF_ERROR(LoadWeights());
  for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    TESSERA_RETURN_IF_ERROR(Step(i, tokens).WithContext(Describe(graph_, ValueId{i})));
    if (trace != nullptr && !node.label.empty()) {
      const auto wanted = trace->find(node.label);
      if (wanted != trace->end()) wanted->second = values_[i];
    }
    // A step of many tokens over many layers would not fit otherwise.
    for (const ValueId input : node.inputs) {
      if (last_use_[input.index] == i) values_[input.index] = {};
    }
  }
  position_ += static_cast<int64_t>(tokens.size());
  return std::move(values_.back());
}

Status Interpreter::Step(uint32_t index, std::span<const int32_t> tokens) {
  const Node& node = graph_.nodes[index];
  const auto value = [&](size_t i) {
    return std::span<const double>(values_[node.inputs[i].index]);
  };
  const auto weight = [&](size_t i) { return loaded_[node.inputs[i].index]; };
  std::vector<double>& out = values_[index];
  switch (node.op) {
    case Op::kTokens:     // Used as they are by embed,
    case Op::kPositions:  // as position_ by rope,
    case Op::kParameter:  // from loaded_.
      return {};
    case Op::kEmbed: {
      const tensor::Shape& table = graph_.input(node, 0).type.dims;
      for (const int32_t id : tokens) {
        if (id < 0 || id >= table[0]) {
          return InvalidArgument(fmt::format("token {}, expected 0 to {}", id, table[0] - 1));
        }
      }
      out = ops::Embed(weight(0), table[1], tokens);
      return {};
    }
    case Op::kRmsNorm:
      out = ops::RmsNorm(value(0), weight(1), node.As<RmsNormAttrs>().eps);
      return {};
    case Op::kLinear:
      out = ops::Linear(value(0), weight(1),
                        node.inputs.size() == 3 ? weight(2) : std::span<const float>(),
                        graph_.input(node, 0).type.dims[0]);
      return {};
    case Op::kSplitHeads:
    case Op::kMergeHeads:
    case Op::kOutput:
      out = values_[node.inputs[0].index];
      return {};
    case Op::kRope:
      out = ops::Rope(value(0), graph_.rope_tables[node.As<RopeAttrs>().table], node.type.dims[0],
                      node.type.dims[1], position_);
      return {};
    case Op::kAttention: {
      const auto& attrs = node.As<AttentionAttrs>();
      KvCache& kv = kv_[static_cast<size_t>(attrs.layer)];
      kv.keys.insert(kv.keys.end(), value(1).begin(), value(1).end());
      kv.values.insert(kv.values.end(), value(2).begin(), value(2).end());
      out = ops::Attention(value(0), kv.keys, kv.values, attrs);
      return {};
    }
    case Op::kAdd:
      out = ops::Add(value(0), value(1));
      return {};
    case Op::kMul:
      out = ops::Mul(value(0), value(1));
      return {};
    case Op::kSilu:
      out = ops::Silu(value(0));
      return {};
    case Op::kGeluTanh:
      out = ops::GeluTanh(value(0));
      return {};
    case Op::kScale:
      out = ops::Scale(value(0), node.As<ScaleAttrs>().factor);
      return {};
    case Op::kSoftcap:
      out = ops::Softcap(value(0), node.As<SoftcapAttrs>().cap);
      return {};
  }
  return Internal("no such op");
}

int32_t ArgMax(std::span<const double> row) {
  TESSERA_CHECK(!row.empty());
  return static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

}  // namespace tessera::graph
