// SPDX-License-Identifier: Apache-2.0
//
// Single ops against values worked out by hand; whole graphs by their properties. Parity with an
// independent implementation is tested with real files in src/model.
#include "graph/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph/builder.h"
#include "graph/interpreter_ops.h"
#include "graph/tiny_graph_for_test.h"

namespace tessera::graph {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr double kClose = 1e-12;
MATCHER_P(Near, tolerance, "") {
  return std::abs(std::get<0>(arg) - std::get<1>(arg)) <= tolerance;
}

TEST(InterpreterOps, EmbedTakesRows) {
  const std::vector<float> table = {1, 2, 3, 4, 5, 6};
  const std::vector<int32_t> ids = {2, 0, 2};
  EXPECT_THAT(ops::Embed(table, 2, ids), ElementsAre(5, 6, 1, 2, 5, 6));
}

TEST(InterpreterOps, RmsNormDividesEachRowByItsOwnRootMeanSquare) {
  const std::vector<double> x = {3, 4, 0, 0};
  const std::vector<float> weight = {1, 2};
  const double rms = std::sqrt(12.5 + 0.5);
  EXPECT_THAT(ops::RmsNorm(x, weight, 0.5),
              Pointwise(Near(kClose), std::vector<double>{3 / rms, 8 / rms, 0, 0}));
}

TEST(InterpreterOps, LinearMultipliesByTheTransposedWeightAndAddsTheBias) {
  const std::vector<double> x = {1, 2, 3, -1, 0, 1};
  const std::vector<float> weight = {1, 0, 0, 1, 1, 1};
  const std::vector<float> bias = {10, 20};
  EXPECT_THAT(ops::Linear(x, weight, {}, 3), ElementsAre(1, 6, -1, 0));
  EXPECT_THAT(ops::Linear(x, weight, bias, 3), ElementsAre(11, 26, 9, 20));
}

TEST(InterpreterOps, LinearSumsEveryColumnOfLongRows) {
  for (int64_t columns : {7, 8, 9, 16, 23}) {
    std::vector<double> x(static_cast<size_t>(columns));
    std::vector<float> weight(static_cast<size_t>(columns));
    double expected = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<double>(i + 1);
      weight[i] = static_cast<float>(2 * i) - 3.0F;
      expected += x[i] * weight[i];
    }
    EXPECT_THAT(ops::Linear(x, weight, {}, columns), ElementsAre(expected)) << columns;
  }
}

TEST(InterpreterOps, RopeTurnsPairsOfItsStyleAndLeavesTheRest) {
  const std::vector<double> x = {1, 2, 3, 4, 5};  // One head of five, four of them rotary.
  RopeTable table{.rotary_dim = 4,
                  .style = RopeStyle::kHalf,
                  .inverse_frequency = {0.5, 0.1},
                  .attention_factor = 2};
  const double c0 = 2 * std::cos(1.5), s0 = 2 * std::sin(1.5);  // Position 3.
  const double c1 = 2 * std::cos(0.3), s1 = 2 * std::sin(0.3);
  const std::vector<double> half = {1 * c0 - 3 * s0, 2 * c1 - 4 * s1, 1 * s0 + 3 * c0,
                                    2 * s1 + 4 * c1, 5};
  EXPECT_THAT(ops::Rope(x, table, 1, 5, 3), Pointwise(Near(kClose), half));
  table.style = RopeStyle::kInterleaved;
  const std::vector<double> interleaved = {1 * c0 - 2 * s0, 1 * s0 + 2 * c0, 3 * c1 - 4 * s1,
                                           3 * s1 + 4 * c1, 5};
  EXPECT_THAT(ops::Rope(x, table, 1, 5, 3), Pointwise(Near(kClose), interleaved));
}

TEST(InterpreterOps, AttentionIsCausalGroupedWindowedAndCapped) {
  // Two query heads share one KV head of dimension 1; two tokens after one cached position.
  AttentionAttrs attrs{.layer = 0, .heads = 2, .kv_heads = 1, .head_dim = 1, .scale = 0.5};
  const std::vector<double> q = {0, 2, 0, 4};
  const std::vector<double> keys = {1, 2, 3};
  const std::vector<double> values = {10, 20, 40};
  const auto mix = [&](double query, size_t first, size_t end, double cap) {
    double sum = 0, weighted = 0;
    for (size_t i = first; i < end; ++i) {
      double score = query * keys[i] * 0.5;
      if (cap > 0) score = cap * std::tanh(score / cap);
      sum += std::exp(score);
      weighted += std::exp(score) * values[i];
    }
    return weighted / sum;
  };
  EXPECT_THAT(
      ops::Attention(q, keys, values, attrs),
      Pointwise(Near(kClose), std::vector<double>{15, mix(2, 0, 2, 0), 70.0 / 3, mix(4, 0, 3, 0)}));
  attrs.window = 2;
  EXPECT_THAT(
      ops::Attention(q, keys, values, attrs),
      Pointwise(Near(kClose), std::vector<double>{15, mix(2, 0, 2, 0), 30, mix(4, 1, 3, 0)}));
  attrs.window = 1;
  EXPECT_THAT(ops::Attention(q, keys, values, attrs), ElementsAre(20, 20, 40, 40));
  attrs.window = std::nullopt;
  attrs.softcap = 1.5;
  EXPECT_THAT(ops::Attention(q, keys, values, attrs),
              Pointwise(Near(kClose),
                        std::vector<double>{15, mix(2, 0, 2, 1.5), 70.0 / 3, mix(4, 0, 3, 1.5)}));
}

TEST(InterpreterOps, ElementwiseFunctionsHaveTheirTextbookValues) {
  const std::vector<double> x = {-2, 0, 1};
  EXPECT_THAT(ops::Add(x, x), ElementsAre(-4, 0, 2));
  EXPECT_THAT(ops::Mul(x, x), ElementsAre(4, 0, 1));
  EXPECT_THAT(ops::Scale(x, 3), ElementsAre(-6, 0, 3));
  // Published values: silu(1) = 0.7310585786, gelu_tanh(1) = 0.8411919906, both to 1e-9.
  EXPECT_THAT(ops::Silu(x),
              ElementsAre(DoubleNear(-0.2384058440, 1e-9), 0, DoubleNear(0.7310585786, 1e-9)));
  EXPECT_THAT(ops::GeluTanh(x),
              ElementsAre(DoubleNear(-0.0454023059, 1e-9), 0, DoubleNear(0.8411919906, 1e-9)));
  EXPECT_THAT(
      ops::Softcap(x, 2),
      Pointwise(Near(kClose), std::vector<double>{-2 * std::tanh(1.0), 0, 2 * std::tanh(0.5)}));
}

TEST(Interpreter, GivesTheSameLogitsForEverySplitOfTheTokens) {
  const Graph graph = TinyGraph();
  RandomWeights weights(7);
  const std::vector<int32_t> tokens = {3, 1, 4, 1, 5, 9, 2};
  Interpreter whole(graph, weights);
  const Result<std::vector<double>> expected = whole.Run(tokens);
  ASSERT_TRUE(expected.has_value()) << expected.error().ToString();
  ASSERT_EQ(expected->size(), tokens.size() * 16);
  Interpreter split(graph, weights);
  for (size_t cut = 1; cut < tokens.size(); ++cut) {
    split.Reset();
    std::vector<double> logits = split.Run(std::span(tokens).first(cut)).value();
    EXPECT_EQ(split.position(), static_cast<int64_t>(cut));
    const std::vector<double> rest = split.Run(std::span(tokens).subspan(cut)).value();
    logits.insert(logits.end(), rest.begin(), rest.end());
    EXPECT_EQ(logits, *expected) << cut;
  }
}

TEST(Interpreter, DependsOnOrderAndOnEveryEarlierToken) {
  const Graph graph = TinyGraph();
  RandomWeights weights(7);
  const auto last_row = [&](const std::vector<int32_t>& tokens) {
    Interpreter interpreter(graph, weights);
    const std::vector<double> logits = interpreter.Run(tokens).value();
    return std::vector<double>(logits.end() - 16, logits.end());
  };
  const std::vector<double> row = last_row({1, 2, 3, 4, 5});
  EXPECT_EQ(row, last_row({1, 2, 3, 4, 5}));
  // Layer 0 sees three positions only, layer 1 all of them.
  EXPECT_NE(row, last_row({6, 2, 3, 4, 5}));
  EXPECT_NE(row, last_row({2, 1, 3, 4, 5}));
}

TEST(Interpreter, TracesTheValuesAskedFor) {
  const Graph graph = TinyGraph();
  RandomWeights weights(1);
  Interpreter interpreter(graph, weights);
  Trace trace = {{"embedding", {}}, {"logits", {}}, {"layer0.q_rope", {}}};
  const std::vector<int32_t> tokens = {3, 3};
  const std::vector<double> logits = interpreter.Run(tokens, &trace).value();
  EXPECT_EQ(trace["logits"], logits);
  EXPECT_EQ(trace["embedding"].size(), 16u);
  const std::span<const float> table = weights.Load("embed", {16, 8}).value();
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(trace["embedding"][8 + i], table[3 * 8 + i]);
  EXPECT_EQ(trace["layer0.q_rope"].size(), 16u);

  Trace unknown = {{"layer9.q", {}}};
  EXPECT_THAT(StatusOf(interpreter.Run(tokens, &unknown)).ToString(), HasSubstr("'layer9.q'"));
}

TEST(Interpreter, RefusesTokensOutsideTheVocabulary) {
  const Graph graph = TinyGraph();
  RandomWeights weights(1);
  for (const int32_t token : {-1, 16, INT32_MAX, INT32_MIN}) {
    Interpreter interpreter(graph, weights);
    const Status status = StatusOf(interpreter.Run(std::vector<int32_t>{0, token}));
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.ToString(), HasSubstr("embed @embedding: token " + std::to_string(token)));
  }
  Interpreter interpreter(graph, weights);
  EXPECT_TRUE(interpreter.Run(std::vector<int32_t>{15}).has_value());
  EXPECT_EQ(StatusOf(interpreter.Run({})).code(), Code::kInvalidArgument);
}

TEST(Interpreter, ReportsAWeightThatTheSourceLacks) {
  class Empty : public WeightSource {
    Result<std::span<const float>> Load(const std::string& name, const tensor::Shape&) override {
      return Fail(NotFound("no weight " + name));
    }
  } none;
  const Graph graph = TinyGraph();
  Interpreter interpreter(graph, none);
  const Status status = StatusOf(interpreter.Run(std::vector<int32_t>{1}));
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.ToString(), HasSubstr("no weight embed"));
}

}  // namespace
}  // namespace tessera::graph
