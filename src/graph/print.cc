// SPDX-License-Identifier: Apache-2.0
#include "graph/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tessera::graph {
namespace {

/// Quoted; bytes other than printable ASCII as \xNN, so that any name survives.
std::string Quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte > 0x7e) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string AttributeText(const AttentionAttrs& a) {
  std::string text = fmt::format("layer={}, heads={}, kv_heads={}, head_dim={}, scale={}", a.layer,
                                 a.heads, a.kv_heads, a.head_dim, a.scale);
  if (a.window) text += fmt::format(", window={}", *a.window);
  if (a.softcap) text += fmt::format(", softcap={}", *a.softcap);
  return text;
}
std::string AttributeText(const RmsNormAttrs& a) {
  return fmt::format("eps={}", a.eps);
}
std::string AttributeText(const SplitHeadsAttrs& a) {
  return fmt::format("heads={}", a.heads);
}
std::string AttributeText(const RopeAttrs& a) {
  return fmt::format("table={}", a.table);
}
std::string AttributeText(const ScaleAttrs& a) {
  return fmt::format("factor={}", a.factor);
}
std::string AttributeText(const SoftcapAttrs& a) {
  return fmt::format("cap={}", a.cap);
}
// These two print no braces.
std::string AttributeText(const ParameterAttrs&) {
  return {};
}
std::string AttributeText(const std::monostate&) {
  return {};
}

}  // namespace

std::string PrintNode(const Graph& graph, ValueId id) {
  const Node& node = graph.node(id);
  std::string text = fmt::format("%{} = {}", id.index, Name(node.op));
  if (const auto* parameter = std::get_if<ParameterAttrs>(&node.attrs)) {
    text += " " + Quote(parameter->name);
  }
  if (!node.inputs.empty()) {
    text += '(';
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      text += fmt::format("{}%{}", i == 0 ? "" : ", ", node.inputs[i].index);
    }
    text += ')';
  }
  const std::string attributes =
      std::visit([](const auto& attrs) { return AttributeText(attrs); }, node.attrs);
  if (!attributes.empty()) text += fmt::format(" {{{}}}", attributes);
  text += " : " + node.type.ToString();
  if (!node.label.empty()) text += " @" + node.label;
  return text;
}

std::string PrintGraph(const Graph& graph) {
  std::string text = fmt::format("graph {}\n", Quote(graph.name));
  for (size_t i = 0; i < graph.rope_tables.size(); ++i) {
    const RopeTable& table = graph.rope_tables[i];
    text += fmt::format(
        "rope_table {} rotary_dim={} style={} attention_factor={} inverse_frequency=[{}]\n", i,
        table.rotary_dim, table.style == RopeStyle::kHalf ? "half" : "interleaved",
        table.attention_factor, fmt::join(table.inverse_frequency, ","));
  }
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    text += PrintNode(graph, ValueId{i}) + '\n';
  }
  return text;
}

}  // namespace tessera::graph
