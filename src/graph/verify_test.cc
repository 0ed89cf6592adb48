// SPDX-License-Identifier: Apache-2.0
#include "graph/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/builder.h"
#include "graph/infer.h"
#include "graph/limits.h"
#include "graph/parse.h"
#include "graph/print.h"
#include "graph/tiny_graph_for_test.h"

namespace tessera::graph {
namespace {

using ::testing::HasSubstr;

/// The node with that label, for damaging it.
Node& At(Graph& graph, std::string_view label) {
  for (Node& node : graph.nodes) {
    if (node.label == label) return node;
  }
  ADD_FAILURE() << "no node " << label;
  return graph.nodes.front();
}

Node& First(Graph& graph, Op op) {
  for (Node& node : graph.nodes) {
    if (node.op == op) return node;
  }
  ADD_FAILURE() << "no node " << Name(op);
  return graph.nodes.front();
}

TEST(Builder, InfersTypesAndSharesParametersAndTables) {
  const Graph graph = TinyGraph();
  EXPECT_TRUE(Verify(graph).ok()) << Verify(graph).ToString();
  EXPECT_EQ(FindLabel(graph, "embedding")->type.ToString(), "f32[T,8]");
  EXPECT_EQ(FindLabel(graph, "layer0.q_rope")->type.ToString(), "f32[T,2,4]");
  EXPECT_EQ(graph.nodes.back().type.ToString(), "f32[T,16]");
  EXPECT_EQ(graph.rope_tables.size(), 2u);
  EXPECT_EQ(LayerCount(graph), 2);
  int embeds = 0;
  for (const Node& node : graph.nodes) {
    embeds += node.op == Op::kParameter && node.As<ParameterAttrs>().name == "embed";
  }
  EXPECT_EQ(embeds, 1);
}

TEST(Builder, ReportsTheFirstErrorWithItsNode) {
  Builder b("bad");
  const ValueId x = b.Embed(b.Parameter("embed", {16, 8}));
  const ValueId y = b.Linear(x, b.Parameter("w", {8, 9}), std::nullopt, "layer0.q");
  const Result<Graph> graph = std::move(b).Finish(b.SplitHeads(y, 7));
  ASSERT_FALSE(graph.has_value());
  EXPECT_EQ(graph.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(graph.error().ToString(),
            "%4 linear @layer0.q: expected weight f32[N,8], got f32[8,9]");
}

TEST(Builder, RefusesOneParameterWithTwoShapes) {
  Builder b("bad");
  const ValueId x = b.Embed(b.Parameter("w", {16, 8}));
  const Result<Graph> graph = std::move(b).Finish(b.Linear(x, b.Parameter("w", {15, 8})));
  ASSERT_FALSE(graph.has_value());
  EXPECT_THAT(graph.error().ToString(), HasSubstr("\"w\" is used as [16,8] and as [15,8]"));
}

struct Damage {
  const char* expect;
  void (*apply)(Graph&);
};

TEST(Verify, NamesTheNodeAndWhatItExpected) {
  const Damage damages[] = {
      {"last node must be the output", [](Graph& g) { g.nodes.pop_back(); }},
      {"output must be the last node", [](Graph& g) { g.nodes.push_back(g.nodes.back()); }},
      {"@embedding: input %99 is not an earlier node",
       [](Graph& g) { At(g, "embedding").inputs[0] = ValueId{99}; }},
      {"@embedding: input %2 is not an earlier node",
       [](Graph& g) { At(g, "embedding").inputs[0] = ValueId{2}; }},
      {"@embedding: 1 inputs, expected 2 to 2",
       [](Graph& g) { At(g, "embedding").inputs.pop_back(); }},
      {"@embedding: expected a table f32[V,D], got i32[T]",
       [](Graph& g) { At(g, "embedding").inputs[0] = At(g, "embedding").inputs[1]; }},
      {"@embedding: type is f32[T,9], expected f32[T,8]",
       [](Graph& g) { At(g, "embedding").type.dims = {9}; }},
      {"@layer0.attn_norm: eps is -1",
       [](Graph& g) { At(g, "layer0.attn_norm").attrs = RmsNormAttrs{-1}; }},
      {"@layer0.attn_norm: attributes of another op",
       [](Graph& g) { At(g, "layer0.attn_norm").attrs = ScaleAttrs{}; }},
      {"@layer0.attn_norm: expected weight f32[8], got f32[16,8]",
       [](Graph& g) { At(g, "layer0.attn_norm").inputs[1] = At(g, "embedding").inputs[0]; }},
      {"rope table 3, but the graph has 2",
       [](Graph& g) { At(g, "layer0.q_rope").attrs = RopeAttrs{3}; }},
      {"rotary_dim 6 exceeds head dimension 4",
       [](Graph& g) {
         g.rope_tables[0] = {.rotary_dim = 6, .inverse_frequency = {1, 1, 1}};
       }},
      {"rope_table 0: 2 inverse frequencies, expected 1",
       [](Graph& g) { g.rope_tables[0].rotary_dim = 2; }},
      {"rope_table 0: rotary_dim is 3", [](Graph& g) { g.rope_tables[0].rotary_dim = 3; }},
      {"rope_table 0: attention_factor is 0",
       [](Graph& g) { g.rope_tables[0].attention_factor = 0; }},
      {"attention: layer is 1, expected 0",
       [](Graph& g) { std::get<AttentionAttrs>(First(g, Op::kAttention).attrs).layer = 1; }},
      {"attention: window is 0",
       [](Graph& g) { std::get<AttentionAttrs>(First(g, Op::kAttention).attrs).window = 0; }},
      {"attention: softcap is -1",
       [](Graph& g) { std::get<AttentionAttrs>(First(g, Op::kAttention).attrs).softcap = -1; }},
      {"kv_heads 3 does not divide heads 2",
       [](Graph& g) { std::get<AttentionAttrs>(First(g, Op::kAttention).attrs).kv_heads = 3; }},
      {"expected q f32[T,2,5], got f32[T,2,4]",
       [](Graph& g) { std::get<AttentionAttrs>(First(g, Op::kAttention).attrs).head_dim = 5; }},
      {"split_heads: 3 heads do not divide width 8",
       [](Graph& g) { First(g, Op::kSplitHeads).attrs = SplitHeadsAttrs{3}; }},
      {"@scaled: factor is not finite",
       [](Graph& g) { At(g, "scaled").attrs = ScaleAttrs{1e308 * 10}; }},
      {"@logits: cap is 0", [](Graph& g) { At(g, "logits").attrs = SoftcapAttrs{0}; }},
      {"another node has this label", [](Graph& g) { At(g, "scaled").label = "embedding"; }},
      {"label: expected letters", [](Graph& g) { At(g, "scaled").label = "a b"; }},
      {"graph name: expected letters", [](Graph& g) { g.name = "a\"b"; }},
      {"another node is parameter \"embed\"",
       [](Graph& g) {
         for (Node& node : g.nodes) {
           if (node.op == Op::kParameter) node.attrs = ParameterAttrs{"embed"};
         }
       }},
      {"tokens: occurs twice",
       [](Graph& g) {
         Node copy = First(g, Op::kTokens);
         g.nodes.insert(g.nodes.end() - 1, copy);
       }},
      {"%41 silu: no node uses it",
       [](Graph& g) {
         Node silu = First(g, Op::kSilu);
         silu.label.clear();
         g.nodes.insert(g.nodes.end() - 1, silu);
       }},
      {"the graph has no nodes", [](Graph& g) { g.nodes.clear(); }},
  };
  for (const Damage& damage : damages) {
    Graph graph = TinyGraph();
    damage.apply(graph);
    const Status status = Verify(graph);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << damage.expect;
    EXPECT_THAT(status.ToString(), HasSubstr(damage.expect));
  }
}

TEST(Verify, HoldsItsLimits) {
  Graph graph = TinyGraph();
  graph.rope_tables.resize(kMaxRopeTables, graph.rope_tables[0]);
  EXPECT_TRUE(Verify(graph).ok());
  graph.rope_tables.push_back(graph.rope_tables[0]);
  EXPECT_EQ(Verify(graph).code(), Code::kResourceExhausted);

  graph = TinyGraph();
  Node& node = At(graph, "scaled");
  node.label = std::string(kMaxNameBytes, 'a');
  EXPECT_TRUE(Verify(graph).ok());
  node.label += 'a';
  EXPECT_EQ(Verify(graph).code(), Code::kInvalidArgument);
}

/// Tokens, table, embedding, as many silu as it takes, output: `nodes` in all.
Result<Graph> Chain(uint64_t nodes) {
  Builder b("chain");
  ValueId x = b.Embed(b.Parameter("embed", {16, 8}));
  for (uint64_t i = 4; i < nodes; ++i) x = b.Silu(x);
  return std::move(b).Finish(x);
}

TEST(Verify, HoldsTheLimitOfNodes) {
  EXPECT_EQ(Chain(kMaxNodes - 1)->nodes.size(), kMaxNodes - 1);
  const Result<Graph> full = Chain(kMaxNodes);
  ASSERT_TRUE(full.has_value()) << full.error().ToString();
  EXPECT_EQ(full->nodes.size(), kMaxNodes);
  const std::string text = PrintGraph(*full);
  EXPECT_TRUE(ParseGraph(text).has_value());
  EXPECT_EQ(StatusOf(Chain(kMaxNodes + 1)).code(), Code::kResourceExhausted);
  // A text with one more: what comes after does not matter.
  const size_t output = text.rfind('%', text.rfind("= output"));
  ASSERT_NE(output, std::string::npos);
  const std::string last = std::to_string(kMaxNodes - 1);
  const std::string more = text.substr(0, output) + "%" + last + " = silu(%" +
                           std::to_string(kMaxNodes - 2) + ") : f32[T,8]\n%" +
                           std::to_string(kMaxNodes) + " = output(%" + last + ") : f32[T,8]\n";
  EXPECT_EQ(StatusOf(ParseGraph(more)).code(), Code::kResourceExhausted);
}

TEST(Verify, HoldsTheLimitsOfDimensions) {
  for (const int64_t rows : {kMaxDimension - 1, kMaxDimension, kMaxDimension + 1}) {
    Builder b("wide");
    const ValueId x = b.Embed(b.Parameter("embed", {rows, 8}));
    EXPECT_EQ(StatusOf(std::move(b).Finish(x)).code(),
              rows <= kMaxDimension ? Code::kOk : Code::kInvalidArgument)
        << rows;
  }
  for (const int64_t dim : {kMaxRotaryDim - 2, kMaxRotaryDim, kMaxRotaryDim + 2}) {
    RopeTable table = TinyGraph().rope_tables[0];
    table.rotary_dim = dim;
    table.inverse_frequency.assign(static_cast<size_t>(dim / 2), 1.0);
    EXPECT_EQ(CheckRopeTable(table).code(),
              dim <= kMaxRotaryDim ? Code::kOk : Code::kInvalidArgument)
        << dim;
  }
}

}  // namespace
}  // namespace tessera::graph
