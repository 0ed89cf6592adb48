// SPDX-License-Identifier: Apache-2.0
#include "graph/tiny_graph_for_test.h"

#include "graph/builder.h"

namespace tessera::graph {
namespace {

/// Attention of layer 0: q with bias and norm, heads of 4, one KV head.
ValueId FirstAttention(Builder& b, ValueId h) {
  const uint32_t table = b.AddRopeTable(
      {.rotary_dim = 4, .style = RopeStyle::kHalf, .inverse_frequency = {1.0, 0.01}});
  // Arguments that make nodes are evaluated in an order of the compiler's choice: one a call.
  const ValueId weight = b.Parameter("q", {8, 8});
  ValueId q = b.SplitHeads(b.Linear(h, weight, b.Parameter("q.bias", {8})), 2);
  q = b.Rope(b.RmsNorm(q, b.Parameter("q_norm", {4}), 1e-6), table, "layer0.q_rope");
  const ValueId k = b.Rope(b.SplitHeads(b.Linear(h, b.Parameter("k", {4, 8})), 1), table);
  const ValueId v = b.SplitHeads(b.Linear(h, b.Parameter("v", {4, 8})), 1);
  return b.Attention(
      q, k, v, {.layer = 0, .heads = 2, .kv_heads = 1, .head_dim = 4, .scale = 0.5, .window = 3});
}

/// Attention of layer 1: partial interleaved rope with an attention factor, soft cap, no window,
/// and the one use of merge_heads.
ValueId SecondAttention(Builder& b, ValueId h) {
  const uint32_t table = b.AddRopeTable({.rotary_dim = 2,
                                         .style = RopeStyle::kInterleaved,
                                         .inverse_frequency = {0.3},
                                         .attention_factor = 1.25});
  const ValueId heads = b.Rope(b.SplitHeads(h, 2), table, "layer1.k_rope");
  const ValueId merged = b.MergeHeads(heads);
  return b.Attention(
      heads, b.SplitHeads(merged, 2), heads,
      {.layer = 1, .heads = 2, .kv_heads = 2, .head_dim = 4, .scale = 0.5, .softcap = 20});
}

}  // namespace

Graph TinyGraph() {
  Builder b("tiny");
  const ValueId x = b.Embed(b.Parameter("embed", {16, 8}), "embedding");
  const ValueId h = b.RmsNorm(x, b.Parameter("norm", {8}), 1e-5, "layer0.attn_norm");
  const ValueId y = b.Add(x, FirstAttention(b, h), "layer0.after_attn");
  const ValueId z = b.Add(y, SecondAttention(b, y), "layer1.after_attn");
  const ValueId gate = b.Silu(b.Linear(z, b.Parameter("gate", {12, 8})), "silu");
  const ValueId up = b.GeluTanh(b.Linear(z, b.Parameter("up", {12, 8})), "gelu");
  const ValueId inner = b.Mul(gate, up);
  const ValueId down = b.Linear(inner, b.Parameter("down", {8, 12}));
  const ValueId out = b.Scale(b.Add(z, down), 0.25, "scaled");
  const ValueId head = b.Linear(out, b.Parameter("embed", {16, 8}));
  Result<Graph> graph = std::move(b).Finish(b.Softcap(head, 30, "logits"));
  TESSERA_CHECK(graph.has_value());
  return *std::move(graph);
}

}  // namespace tessera::graph
