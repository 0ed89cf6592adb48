// SPDX-License-Identifier: Apache-2.0
#include "graph/ir.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tessera::graph {

std::string ValueType::ToString() const {
  std::string text = element == Element::kF32 ? "f32[" : "i32[";
  if (per_token) text += dims.rank() == 0 ? "T" : "T,";
  text += fmt::format("{}]", fmt::join(dims.dims(), ","));
  return text;
}

const Node* FindLabel(const Graph& graph, std::string_view label) {
  for (const Node& node : graph.nodes) {
    if (node.label == label) return &node;
  }
  return nullptr;
}

int64_t LayerCount(const Graph& graph) {
  int64_t count = 0;
  for (const Node& node : graph.nodes) count += node.op == Op::kAttention ? 1 : 0;
  return count;
}

std::vector<std::vector<ValueId>> Users(const Graph& graph) {
  std::vector<std::vector<ValueId>> users(graph.nodes.size());
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId input : graph.nodes[i].inputs) users[input.index].push_back(ValueId{i});
  }
  return users;
}

}  // namespace tessera::graph
