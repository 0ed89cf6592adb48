// SPDX-License-Identifier: Apache-2.0
//
// sharktank's own datasets as models: the toy's logits against those that its exported module gave,
// and a set of two ranks against the one it was cut from.
#include "model/dataset_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "graph/interpreter.h"
#include "model/build.h"
#include "model/index_weights.h"
#include "model/open.h"
#include "support/fixtures.h"
#include "tensor/convert.h"

namespace tessera::model {
namespace {

using ::tessera::testing::ReadAll;
using ::tessera::testing::Shared;

ModelSource MustOpen(const std::filesystem::path& path) {
  Result<ModelSource> source = OpenModel(path);
  EXPECT_TRUE(source.has_value()) << StatusOf(source).ToString();
  return source.has_value() ? *std::move(source) : ModelSource{};
}

std::vector<double> Logits(const ModelSource& source, std::span<const int32_t> tokens) {
  Result<graph::Graph> graph = BuildGraph(source.config, source.index);
  EXPECT_TRUE(graph.has_value()) << StatusOf(graph).ToString();
  if (!graph.has_value()) return {};
  IndexWeights weights(source.index);
  graph::Interpreter interpreter(*graph, weights);
  const Result<std::vector<double>> logits = interpreter.Run(tokens);
  EXPECT_TRUE(logits.has_value()) << StatusOf(logits).ToString();
  return logits.value_or(std::vector<double>());
}

/// The values of a float16 array [1, rows, columns] as numpy stores it.
std::vector<float> ReadNpyHalf(const std::filesystem::path& path) {
  const std::string bytes = ReadAll(path);
  constexpr size_t kHeader = 128;  // As the 1.0 header of this file says: "shape": (1, 32, 256).
  EXPECT_NE(bytes.find("'descr': '<f2'"), std::string::npos);
  std::vector<float> values;
  for (size_t at = kHeader; at + 2 <= bytes.size(); at += 2) {
    uint16_t half = 0;
    std::memcpy(&half, bytes.data() + at, sizeof(half));
    values.push_back(tensor::HalfToFloat(half));
  }
  return values;
}

TEST(DatasetSource, ToyLlamaHasTheLogitsOfItsExportedModule) {
  ModelSource source = MustOpen(Shared("samples/shark/irpa_sharktank/toy_llama.irpa"));
  EXPECT_EQ(source.config.attention.head_dim, 32);
  EXPECT_EQ(source.config.rope.style, graph::RopeStyle::kInterleaved);
  EXPECT_EQ(source.warnings.size(), 1u);  // It has no tokenizer.
  // The sample's module was exported with --use-hf, against the property: its MLIR cuts q and k
  // into elements 0 to 15 and 16 to 31.
  ASSERT_TRUE(UseHfOrder(&source).ok());
  EXPECT_EQ(source.config.rope.style, graph::RopeStyle::kHalf);
  EXPECT_FALSE(source.dataset_properties->at("llama.rope.interleave_emb").get_bool());
  std::vector<int32_t> tokens;
  for (int32_t id = 1; id <= 20; ++id) tokens.push_back(id);
  const std::vector<double> logits = Logits(source, tokens);
  const std::vector<float> expected =
      ReadNpyHalf(Shared("samples/shark/bench/toy.run-flags.expected_logits.npy"));
  constexpr size_t kVocabulary = 256;
  ASSERT_EQ(logits.size(), tokens.size() * kVocabulary);
  ASSERT_EQ(expected.size(), 32 * kVocabulary);
  // The module computes in float16, softmax of sharp scores included: rows differ by up to 3.5% of
  // their size; with the other rotation they have nothing in common.
  for (size_t row = 0; row < tokens.size(); ++row) {
    double error = 0;
    double size = 0;
    for (size_t i = row * kVocabulary; i < (row + 1) * kVocabulary; ++i) {
      const auto wanted = static_cast<double>(expected[i]);
      error += (logits[i] - wanted) * (logits[i] - wanted);
      size += wanted * wanted;
    }
    EXPECT_LT(std::sqrt(error / size), 0.05) << "row " << row;
  }
}

TEST(DatasetSource, OnlyADatasetHasAnOrderToOverride) {
  ModelSource source = MustOpen(Shared("fixtures/tiny_llama/hf"));
  const model::ModelConfig before = source.config;
  EXPECT_EQ(UseHfOrder(&source).code(), Code::kInvalidArgument);
  EXPECT_EQ(source.config, before);
  EXPECT_FALSE(source.use_hf_order);
}

TEST(DatasetSource, RanksGiveWhatTheyWereCutFrom) {
  const ModelSource whole = MustOpen(Shared("samples/shark/irpa_sharktank/tiny2.irpa"));
  const ModelSource ranks = MustOpen(Shared("samples/shark/irpa_sharktank/tiny2_tp2.irpa"));
  EXPECT_EQ(whole.config, ranks.config);
  ASSERT_EQ(whole.index.entries().size(), ranks.index.entries().size());
  for (const formats::ParameterEntry& entry : whole.index.entries()) {
    const formats::ParameterEntry* joined = ranks.index.Find(entry.name);
    ASSERT_NE(joined, nullptr) << entry.name;
    EXPECT_EQ(joined->shape, entry.shape);
    EXPECT_TRUE(ranks.index.Materialise(*joined).value() == whole.index.Materialise(entry).value())
        << entry.name;
  }
  const std::vector<int32_t> tokens = {1, 2, 3, 60, 17};
  EXPECT_EQ(Logits(whole, tokens), Logits(ranks, tokens));
}

}  // namespace
}  // namespace tessera::model
