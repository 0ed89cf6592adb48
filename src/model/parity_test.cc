// SPDX-License-Identifier: Apache-2.0
//
// Real files through open, config, build and the interpreter, against stored logits of an
// independent float64 implementation: a tiny Llama 3.1 in all three forms, and SmolLM2.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph/interpreter.h"
#include "model/build.h"
#include "model/index_weights.h"
#include "model/open.h"
#include "model/reference_for_test.h"
#include "support/fixtures.h"
#include "support/scale.h"

namespace tessera::model {
namespace {

using ::tessera::testing::ExpectRow;
using ::tessera::testing::LogProb;
using ::tessera::testing::ReadReferenceCases;
using ::tessera::testing::ReferenceCase;
using ::tessera::testing::Scaled;
using ::tessera::testing::Shared;
using ::tessera::testing::TestData;

/// A model ready to interpret.
struct Loaded {
  explicit Loaded(const std::filesystem::path& path) {
    Result<ModelSource> opened = OpenModel(path);
    EXPECT_TRUE(opened.has_value()) << StatusOf(opened).ToString();
    if (!opened.has_value()) return;
    source = *std::move(opened);
    Result<graph::Graph> built = BuildGraph(source.config, source.index);
    EXPECT_TRUE(built.has_value()) << StatusOf(built).ToString();
    if (!built.has_value()) return;
    graph = *std::move(built);
    weights.emplace(source.index);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  ModelSource source;
  graph::Graph graph;
  std::optional<IndexWeights> weights;  // Empty when loading failed.
};

/// Logits [tokens, V] as rows.
std::span<const double> Row(const std::vector<double>& logits, size_t row, size_t rows) {
  const size_t width = logits.size() / rows;
  return std::span(logits).subspan(row * width, width);
}

/// The prompt's logits against the stored ones; the interpreter is left behind the prompt.
std::vector<double> ComparePrompt(graph::Interpreter& interpreter, const ReferenceCase& c,
                                  double tolerance) {
  interpreter.Reset();
  const Result<std::vector<double>> logits = interpreter.Run(c.tokens);
  EXPECT_TRUE(logits.has_value()) << StatusOf(logits).ToString();
  if (!logits.has_value()) return {};
  const size_t n = c.tokens.size();
  for (size_t i = 0; i < n; ++i) {
    EXPECT_EQ(graph::ArgMax(Row(*logits, i, n)), c.argmax[i]) << c.id << " position " << i;
  }
  for (size_t i = 0; i < c.positions.size(); ++i) {
    ExpectRow(Row(*logits, i, n), c.positions[i], tolerance,
              c.id + " position " + std::to_string(i));
  }
  ExpectRow(Row(*logits, n - 1, n), c.last, tolerance, c.id + " last");
  double nll = 0;
  for (size_t i = 0; i + 1 < n; ++i) {
    const double logprob = LogProb(Row(*logits, i, n), c.tokens[i + 1]);
    EXPECT_NEAR(logprob, c.prompt_logprobs[i], tolerance) << c.id << " position " << i;
    nll -= logprob;
  }
  if (n > 1) {
    EXPECT_NEAR(nll / static_cast<double>(n - 1), c.mean_nll, 1e-4) << c.id;
  }
  const std::span<const double> last = Row(*logits, n - 1, n);
  return {last.begin(), last.end()};
}

/// Continues greedily from `row`, up to `steps` or the first step that is too close to call.
size_t CompareGreedy(graph::Interpreter& interpreter, std::vector<double> row,
                     const ReferenceCase& c, size_t steps, double tolerance) {
  // Stored logits have five digits, and ours differ by less: closer calls than this are ties.
  constexpr double kMinMargin = 0.001;
  size_t compared = 0;
  for (; compared < std::min(steps, c.greedy.size()); ++compared) {
    const auto& expected = c.greedy[compared];
    if (expected.margin < kMinMargin) break;
    const int32_t id = graph::ArgMax(row);
    EXPECT_EQ(id, expected.id) << c.id << " greedy step " << compared;
    EXPECT_NEAR(row[static_cast<size_t>(id)], expected.logit, tolerance) << c.id;
    if (id != expected.id) break;
    row = interpreter.Run(std::vector<int32_t>{id}).value();
  }
  return compared;
}

struct Activation {
  const char* reference;
  const char* label;
};

constexpr Activation kActivations[] = {
    {"embedding", "embedding"},
    {"layer0_attn_norm", "layer0.attn_norm"},
    {"layer0_q_rope", "layer0.q_rope"},
    {"layer0_k_rope", "layer0.k_rope"},
    {"layer0_attn_out", "layer0.attn_out"},
    {"layer0_after_attn", "layer0.after_attn"},
    {"layer0_ffn_out", "layer0.ffn_out"},
    {"layer0_output", "layer0.output"},
    {"final_norm", "final_norm"},
};

void CompareActivations(Loaded& model, const std::filesystem::path& path, double tolerance,
                        bool rope_rows_match) {
  const json::Value stored = testing::ReadJson(path);
  const json::Object& object = stored.as_object();
  std::vector<int32_t> tokens;
  for (const json::Value& id : object.at("ids").as_array()) {
    tokens.push_back(id.to_number<int32_t>());
  }
  const std::string last = "layer" + std::to_string(model.source.config.layers - 1) + ".output";
  std::vector<Activation> stages(std::begin(kActivations), std::end(kActivations));
  stages.push_back({"last_hidden", last.c_str()});
  graph::Trace trace;
  for (const Activation& stage : stages) trace[stage.label];
  graph::Interpreter interpreter(model.graph, *model.weights);
  ASSERT_TRUE(interpreter.Run(tokens, &trace).has_value());
  const json::Object& activations = object.at("activations").as_object();
  EXPECT_EQ(activations.size(), stages.size());
  for (const Activation& stage : stages) {
    const std::vector<double>& values = trace[stage.label];
    const json::Array& rows = activations.at(stage.reference).as_array();
    ASSERT_EQ(rows.size(), tokens.size());
    const bool is_rope = std::string_view(stage.reference).ends_with("_rope");
    for (size_t t = 0; t < rows.size(); ++t) {
      const std::span<const double> row = Row(values, t, tokens.size());
      const json::Object& expected = rows[t].as_object();
      double squares = 0;
      for (const double value : row) squares += value * value;
      EXPECT_NEAR(std::sqrt(squares), expected.at("l2").to_number<double>(), tolerance)
          << stage.reference << " token " << t;
      // A permutation of rows keeps the length but not the order.
      if (is_rope && !rope_rows_match) continue;
      const json::Array& first = expected.at("first16").as_array();
      ASSERT_EQ(first.size(), 16u);
      for (size_t i = 0; i < first.size(); ++i) {
        EXPECT_NEAR(row[i], first[i].to_number<double>(), tolerance)
            << stage.reference << " token " << t << " element " << i;
      }
    }
  }
}

class TinyLlama : public ::testing::TestWithParam<const char*> {};

// The fixtures allow 2e-4 and 2e-3 for float32 engines; in float64 only the rounding of the stored
// numbers to five digits is left.
constexpr double kTinyTolerance = 2e-5;
constexpr double kSmolLm2Tolerance = 2e-5;

TEST_P(TinyLlama, LogitsOfEveryPositionEqualTheReference) {
  Loaded model(Shared("fixtures/tiny_llama") / GetParam());
  ASSERT_TRUE(model.weights.has_value());
  graph::Interpreter interpreter(model.graph, *model.weights);
  size_t steps = 0;
  size_t compared = 0;
  for (const ReferenceCase& c : ReadReferenceCases(Shared("fixtures/tiny_llama/logits.jsonl"))) {
    // 700 positions take seconds in a debug build and show nothing that 300 do not.
    if (c.tokens.size() > 300) continue;
    const std::vector<double> row = ComparePrompt(interpreter, c, kTinyTolerance);
    ASSERT_FALSE(row.empty());
    steps += CompareGreedy(interpreter, row, c, 64, kTinyTolerance);
    ++compared;
  }
  EXPECT_EQ(compared, 16u);
  EXPECT_GE(steps, 1000u);  // Of 1024.
}

TEST_P(TinyLlama, ActivationsEqualTheReference) {
  Loaded model(Shared("fixtures/tiny_llama") / GetParam());
  ASSERT_TRUE(model.weights.has_value());
  const bool is_gguf = model.source.config.naming == Naming::kGguf;
  CompareActivations(model, Shared("fixtures/tiny_llama/activations.json"), 1e-5, !is_gguf);
}

INSTANTIATE_TEST_SUITE_P(Forms, TinyLlama, ::testing::Values("tiny-f16.gguf", "hf", "hf_sharded"),
                         [](const auto& form) {
                           std::string name = form.param;
                           for (char& c : name) c = std::isalnum(c) ? c : '_';
                           return name;
                         });

TEST(SmolLm2, LogitsActivationsAndGreedyStepsEqualTheReference) {
  Loaded model(TestData("SmolLM2-135M-Instruct.Q4_1.gguf"));
  ASSERT_TRUE(model.weights.has_value());
  CompareActivations(model, Shared("fixtures/model_smollm2/activations.json"), 1e-3, true);
  graph::Interpreter interpreter(model.graph, *model.weights);
  constexpr size_t kCases = Scaled(6, 3);
  constexpr size_t kSteps = Scaled(16, 3);
  size_t steps = 0;
  size_t compared = 0;
  for (const ReferenceCase& c : ReadReferenceCases(Shared("fixtures/model_smollm2/logits.jsonl"))) {
    if (c.tokens.size() > Scaled<size_t>(64, 5)) continue;  // Seconds a token.
    const std::vector<double> row = ComparePrompt(interpreter, c, kSmolLm2Tolerance);
    ASSERT_FALSE(row.empty());
    steps += CompareGreedy(interpreter, row, c, kSteps, kSmolLm2Tolerance);
    ++compared;
  }
  EXPECT_EQ(compared, kCases);
  EXPECT_EQ(steps, kCases * kSteps);
}

}  // namespace
}  // namespace tessera::model
