// SPDX-License-Identifier: Apache-2.0
#include "graph/verify.h"

#include <fmt/format.h>

#include <unordered_set>

#include "graph/infer.h"
#include "graph/limits.h"

namespace tessera::graph {
namespace {

bool IsWord(std::string_view text, std::string_view more) {
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter && more.find(c) == std::string_view::npos) return false;
  }
  return text.size() <= kMaxNameBytes;
}

Status CheckHeader(const Graph& graph) {
  if (!IsWord(graph.name, "_.-")) {
    return InvalidArgument("graph name: expected letters, digits and _.- only");
  }
  if (graph.nodes.size() > kMaxNodes) {
    return ResourceExhausted(fmt::format("{} nodes, at most {}", graph.nodes.size(), kMaxNodes));
  }
  if (graph.rope_tables.size() > kMaxRopeTables) {
    return ResourceExhausted(
        fmt::format("{} rope tables, at most {}", graph.rope_tables.size(), kMaxRopeTables));
  }
  for (size_t i = 0; i < graph.rope_tables.size(); ++i) {
    TESSERA_RETURN_IF_ERROR(
        CheckRopeTable(graph.rope_tables[i]).WithContext(fmt::format("rope_table {}", i)));
  }
  return {};
}

/// Things that must not occur twice, collected while walking the nodes.
struct Seen {
  std::unordered_set<std::string_view> labels;
  std::unordered_set<std::string_view> parameters;
  bool tokens = false;
  bool positions = false;
  int64_t layers = 0;
};

Status CheckOnce(const Node& node, Seen& seen) {
  if (!IsWord(node.label, "_.")) {
    return InvalidArgument("label: expected letters, digits and _. only");
  }
  if (!node.label.empty() && !seen.labels.insert(node.label).second) {
    return InvalidArgument("another node has this label");
  }
  switch (node.op) {
    case Op::kTokens:
      if (std::exchange(seen.tokens, true)) return InvalidArgument("occurs twice");
      return {};
    case Op::kPositions:
      if (std::exchange(seen.positions, true)) return InvalidArgument("occurs twice");
      return {};
    case Op::kParameter:
      if (!seen.parameters.insert(node.As<ParameterAttrs>().name).second) {
        return InvalidArgument(
            fmt::format("another node is parameter \"{}\"", node.As<ParameterAttrs>().name));
      }
      return {};
    case Op::kAttention:
      if (node.As<AttentionAttrs>().layer != seen.layers) {
        return InvalidArgument(fmt::format("layer is {}, expected {}: layers count up in order",
                                           node.As<AttentionAttrs>().layer, seen.layers));
      }
      ++seen.layers;
      return {};
    default:
      return {};
  }
}

Status CheckNode(const Graph& graph, uint32_t index, Seen& seen) {
  const Node& node = graph.nodes[index];
  for (const ValueId input : node.inputs) {
    if (input.index >= index) {
      return InvalidArgument(fmt::format("input %{} is not an earlier node", input.index));
    }
  }
  TESSERA_ASSIGN_OR_RETURN(const ValueType type, InferType(graph, node));
  if (type != node.type) {
    return InvalidArgument(
        fmt::format("type is {}, expected {}", node.type.ToString(), type.ToString()));
  }
  const bool is_last = index + 1 == graph.nodes.size();
  if ((node.op == Op::kOutput) != is_last) {
    return InvalidArgument(is_last ? "the last node must be the output"
                                   : "the output must be the last node");
  }
  return CheckOnce(node, seen);
}

}  // namespace

std::string Describe(const Graph& graph, ValueId id) {
  if (id.index >= graph.nodes.size()) return fmt::format("%{}", id.index);
  const Node& node = graph.node(id);
  std::string text = fmt::format("%{} {}", id.index, Name(node.op));
  if (const auto* parameter = std::get_if<ParameterAttrs>(&node.attrs)) {
    text += fmt::format(" \"{}\"", parameter->name);
  }
  if (!node.label.empty()) text += " @" + node.label;
  return text;
}

Status Verify(const Graph& graph) {
  TESSERA_RETURN_IF_ERROR(CheckHeader(graph));
  if (graph.nodes.empty()) return InvalidArgument("the graph has no nodes");
  Seen seen;
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    Status status = CheckNode(graph, i, seen);
    if (!status.ok()) return std::move(status).WithContext(Describe(graph, ValueId{i}));
  }
  const std::vector<std::vector<ValueId>> users = Users(graph);
  for (uint32_t i = 0; i + 1 < graph.nodes.size(); ++i) {
    if (users[i].empty()) {
      return InvalidArgument("no node uses it").WithContext(Describe(graph, ValueId{i}));
    }
  }
  return {};
}

}  // namespace tessera::graph
