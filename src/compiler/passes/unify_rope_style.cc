// SPDX-License-Identifier: Apache-2.0
//
// Element 2i of an interleaved head moves to i, element 2i + 1 to i + rotary/2. Applied to q and k
// alike it changes no score, as a dot product does not care about the order of its terms.
#include <fmt/format.h>

#include "compiler/passes/passes.h"
#include "graph/verify.h"

namespace tessera::compiler {
namespace {

using graph::Graph;
using graph::Node;
using graph::Op;
using graph::ValueId;

/// The new order of `heads` heads: which old row stands at each new place.
RowRuns HalfSplitOrder(int64_t heads, int64_t head_dim, int64_t rotary_dim) {
  RowRuns runs;
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t first = head * head_dim;
    runs.push_back({0, first, rotary_dim / 2, 2});
    runs.push_back({0, first + 1, rotary_dim / 2, 2});
    if (head_dim > rotary_dim) runs.push_back({0, first + rotary_dim, head_dim - rotary_dim, 1});
  }
  return runs;
}

class Rewriter {
 public:
  explicit Rewriter(Module* module) : module_(module), users_(graph::Users(module->graph)) {}

  /// Reorders what makes the input of one rope node.
  Status Reorder(ValueId rope) {
    const Graph& g = module_->graph;
    const Node& node = g.node(rope);
    const int64_t rotary = g.rope_tables[node.As<graph::RopeAttrs>().table].rotary_dim;
    const int64_t heads = node.type.dims[0];
    const int64_t head_dim = node.type.dims[1];
    ValueId at = node.inputs[0];
    TESSERA_RETURN_IF_ERROR(NeedOneUser(at));
    if (g.node(at).op == Op::kRmsNorm) {  // A norm per head: its weight turns with the head.
      TESSERA_RETURN_IF_ERROR(Order(g.node(at).inputs[1], HalfSplitOrder(1, head_dim, rotary)));
      at = g.node(at).inputs[0];
      TESSERA_RETURN_IF_ERROR(NeedOneUser(at));
    }
    if (g.node(at).op != Op::kSplitHeads) return Unexpected(at, "split_heads");
    at = g.node(at).inputs[0];
    TESSERA_RETURN_IF_ERROR(NeedOneUser(at));
    if (g.node(at).op != Op::kLinear) return Unexpected(at, "linear");
    const RowRuns order = HalfSplitOrder(heads, head_dim, rotary);
    for (size_t i = 1; i < g.node(at).inputs.size(); ++i)
      TESSERA_RETURN_IF_ERROR(Order(g.node(at).inputs[i], order));
    return {};
  }

 private:
  Status Unexpected(ValueId id, std::string_view expected) const {
    return Unimplemented(fmt::format("interleaved rope of {}, expected {}",
                                     graph::Describe(module_->graph, id), expected));
  }
  Status NeedOneUser(ValueId id) const {
    if (users_[id.index].size() == 1) return {};
    return Unimplemented(fmt::format("{} feeds interleaved rope and something else",
                                     graph::Describe(module_->graph, id)));
  }
  /// Two head norms may share one weight; then both want the same order.
  Status Order(ValueId parameter, const RowRuns& order) {
    if (module_->graph.node(parameter).op != Op::kParameter)
      return Unexpected(parameter, "parameter");
    const auto& name = module_->graph.node(parameter).As<graph::ParameterAttrs>().name;
    const auto [place, added] = module_->row_order.emplace(name, order);
    if (!added && place->second != order)
      return Unimplemented(fmt::format("parameter {} would need two orders of rows", name));
    return {};
  }

  Module* module_;
  std::vector<std::vector<ValueId>> users_;
};

}  // namespace

Status UnifyRopeStyle(Module* module) {
  Graph& g = module->graph;
  Rewriter rewriter(module);
  for (uint32_t i = 0; i < g.nodes.size(); ++i) {
    if (g.nodes[i].op != Op::kRope) continue;
    const graph::RopeTable& table = g.rope_tables[g.nodes[i].As<graph::RopeAttrs>().table];
    if (table.style == graph::RopeStyle::kInterleaved)
      TESSERA_RETURN_IF_ERROR(rewriter.Reorder({i}));
  }
  for (graph::RopeTable& table : g.rope_tables) table.style = graph::RopeStyle::kHalf;
  return {};
}

}  // namespace tessera::compiler
