// SPDX-License-Identifier: Apache-2.0
//
// The pass changes no logit: the graph before, and the graph after with reordered weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/passes/passes.h"
#include "graph/builder.h"
#include "graph/interpreter.h"
#include "graph/verify.h"

namespace tessera::compiler {
namespace {

using graph::ValueId;

/// Random weights in the order that the module wants.
class Reordered : public graph::WeightSource {
 public:
  Reordered(uint64_t seed, const Module& module) : random_(seed), module_(module) {}
  Result<std::span<const float>> Load(const std::string& name,
                                      const tensor::Shape& shape) override {
    TESSERA_ASSIGN_OR_RETURN(const std::span<const float> values, random_.Load(name, shape));
    const auto order = module_.row_order.find(name);
    if (order == module_.row_order.end()) return values;
    const int64_t columns = shape.rank() == 1 ? 1 : shape.columns();
    std::vector<float>& out = kept_[name];
    for (const RowRun& run : order->second) {
      for (int64_t i = 0; i < run.count; ++i) {
        const auto row = values.subspan(static_cast<size_t>((run.first + i * run.step) * columns),
                                        static_cast<size_t>(columns));
        out.insert(out.end(), row.begin(), row.end());
      }
    }
    return std::span<const float>(out);
  }

 private:
  graph::RandomWeights random_;
  const Module& module_;
  std::map<std::string, std::vector<float>> kept_;
};

/// Attention with everything that turns with a head: bias, head norm, partial rope.
Result<graph::Graph> InterleavedGraph(bool share_projection) {
  graph::Builder b("interleaved");
  const ValueId x = b.Embed(b.Parameter("embed", {16, 8}));
  const ValueId h = b.RmsNorm(x, b.Parameter("norm", {8}), 1e-5);
  const uint32_t table = b.AddRopeTable(
      {.rotary_dim = 4, .style = graph::RopeStyle::kInterleaved, .inverse_frequency = {1.0, 0.1}});
  const ValueId wq = b.Parameter("q", {12, 8});
  const ValueId q = b.SplitHeads(b.Linear(h, wq, b.Parameter("q.bias", {12})), 2, "q_heads");
  const ValueId q_rope = b.Rope(b.RmsNorm(q, b.Parameter("q_norm", {6}), 1e-6), table);
  const ValueId k = b.SplitHeads(b.Linear(h, b.Parameter("k", {6, 8})), 1, "k_heads");
  const ValueId k_rope = b.Rope(k, table);
  const ValueId v = share_projection ? k : b.SplitHeads(b.Linear(h, b.Parameter("v", {6, 8})), 1);
  const ValueId attention = b.Attention(
      q_rope, k_rope, v, {.layer = 0, .heads = 2, .kv_heads = 1, .head_dim = 6, .scale = 0.4});
  const ValueId y = b.Add(x, b.Linear(attention, b.Parameter("o", {8, 12})));
  return std::move(b).Finish(b.Linear(y, b.Parameter("head", {16, 8})));
}

TEST(UnifyRopeStyle, ChangesNoLogit) {
  const auto before = InterleavedGraph(false);
  ASSERT_TRUE(before.has_value()) << before.error().ToString();
  Module module;
  module.graph = *before;
  ASSERT_TRUE(UnifyRopeStyle(&module).ok());
  ASSERT_TRUE(graph::Verify(module.graph).ok());
  EXPECT_EQ(module.graph.rope_tables[0].style, graph::RopeStyle::kHalf);
  EXPECT_EQ(module.row_order.size(), 4U) << "q, its bias, its norm, and k";

  const std::vector<int32_t> tokens = {3, 1, 4, 1, 5, 9};
  graph::RandomWeights plain(11);
  Reordered reordered(11, module);
  const auto expected = graph::Interpreter(*before, plain).Run(tokens);
  const auto actual = graph::Interpreter(module.graph, reordered).Run(tokens);
  ASSERT_TRUE(expected.has_value() && actual.has_value());
  for (size_t i = 0; i < expected->size(); ++i) EXPECT_NEAR((*actual)[i], (*expected)[i], 1e-12);
  // Without the reordering the graph after means something else: the test can fail.
  graph::RandomWeights wrong(11);
  const auto different = graph::Interpreter(module.graph, wrong).Run(tokens);
  ASSERT_TRUE(different.has_value());
  EXPECT_NE(*different, *expected);
}

TEST(UnifyRopeStyle, LeavesHalfSplitGraphsAlone) {
  auto graph = InterleavedGraph(false);
  ASSERT_TRUE(graph.has_value());
  graph->rope_tables[0].style = graph::RopeStyle::kHalf;
  Module module;
  module.graph = *graph;
  ASSERT_TRUE(UnifyRopeStyle(&module).ok());
  EXPECT_EQ(module.graph, *graph);
  EXPECT_TRUE(module.row_order.empty());
}

TEST(UnifyRopeStyle, RefusesAProjectionThatSomethingElseReads) {
  Module module;
  const auto graph = InterleavedGraph(true);
  ASSERT_TRUE(graph.has_value());
  module.graph = *graph;
  const Status status = UnifyRopeStyle(&module);
  EXPECT_EQ(status.code(), Code::kUnimplemented);
  EXPECT_THAT(status.ToString(), ::testing::HasSubstr("k_heads"));
}

}  // namespace
}  // namespace tessera::compiler
