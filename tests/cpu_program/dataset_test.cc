// SPDX-License-Identifier: Apache-2.0
//
// sharktank's datasets through the compiler: the program's logits against the interpreter's, ranks
// against the one file, a dataset of a GGUF against the GGUF.
#include <gtest/gtest.h>

#include <cmath>

#include "base/hash.h"
#include "compiler/dataset/emit.h"
#include "graph/interpreter.h"
#include "harness.h"
#include "model/build.h"
#include "model/index_weights.h"

namespace tessera::testing {
namespace {

std::filesystem::path Sample(std::string_view name) {
  return Shared("samples/shark/irpa_sharktank") / name;
}

std::vector<int32_t> Tokens(int32_t count, int32_t vocabulary) {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < count; ++i) tokens.push_back((i * 37 + 5) % vocabulary);
  return tokens;
}

std::vector<double> Interpreted(const std::filesystem::path& path,
                                std::span<const int32_t> tokens) {
  const auto source = model::OpenModel(path);
  EXPECT_TRUE(source.has_value()) << source.error().ToString();
  const auto graph = model::BuildGraph(source->config, source->index);
  EXPECT_TRUE(graph.has_value()) << graph.error().ToString();
  model::IndexWeights weights(source->index);
  graph::Interpreter interpreter(*graph, weights);
  return interpreter.Run(tokens).value_or(std::vector<double>());
}

/// |a - b| / |b| over all logits.
double RelativeError(const Logits& logits, const std::vector<double>& expected) {
  EXPECT_EQ(logits.size(), expected.size());
  double error = 0;
  double size = 0;
  for (size_t i = 0; i < std::min(logits.size(), expected.size()); ++i) {
    const double difference = static_cast<double>(logits[i]) - expected[i];
    error += difference * difference;
    size += expected[i] * expected[i];
  }
  return std::sqrt(error / size);
}

// Its feed-forward network has 23 columns, which are padded to whole groups. The random weights
// make attention so sharp that float16 keys decide single scores: tokens alone show the rest
// exactly.
TEST(Dataset, ToyLlamaComputesWhatItsGraphSays) {
  const auto session = MustLoad(BundleOf(Sample("toy_llama.irpa")));
  ASSERT_NE(session, nullptr);
  const std::vector<int32_t> tokens = Tokens(40, 256);
  for (const int32_t token : std::span(tokens).first(8)) {
    const std::vector<double> expected = Interpreted(Sample("toy_llama.irpa"), {{token}});
    EXPECT_LT(RelativeError(RunAll(session.get(), {{token}}), expected), 0.002) << token;
  }
  const std::vector<double> expected = Interpreted(Sample("toy_llama.irpa"), tokens);
  EXPECT_LT(RelativeError(RunAll(session.get(), tokens), expected), 0.05);
}

TEST(Dataset, RanksGiveTheLogitsOfTheWhole) {
  const std::vector<int32_t> tokens = Tokens(40, 64);
  const auto whole = MustLoad(BundleOf(Sample("tiny2.irpa")));
  const auto ranks = MustLoad(BundleOf(Sample("tiny2_tp2.irpa")));
  ASSERT_TRUE(whole != nullptr && ranks != nullptr);
  EXPECT_EQ(RunAll(whole.get(), tokens), RunAll(ranks.get(), tokens));
}

/// The bundle's parameters by hash.
std::string ParametersOf(const std::filesystem::path& bundle) {
  const auto opened = bundle::OpenBundle(bundle, bundle::Check::kSizesAndSmallFiles);
  EXPECT_TRUE(opened.has_value()) << opened.error().ToString();
  if (!opened.has_value()) return "";
  Sha256 hash;
  for (const bundle::Weight& weight : opened->program.weights) {
    hash.Update(AsBytes(weight.entry));
    hash.Update(opened->archive.View(*opened->archive.Find(weight.entry)).bytes);
  }
  return hash.FinishHex();
}

// Planes and back: not a bit of any block is lost, sharded or not.
TEST(Dataset, OfAGgufPacksToTheSameParameters) {
  TempDir folder;
  const auto source = model::OpenModel(SmolLm2());
  ASSERT_TRUE(source.has_value()) << source.error().ToString();
  const std::string expected = ParametersOf(BundleOf(SmolLm2()));
  for (const int64_t ranks : {1, 3}) {
    const std::filesystem::path path = folder.path() / "smollm2.irpa";
    const auto report = compiler::EmitDataset(*source, {path, ranks});
    ASSERT_TRUE(report.has_value()) << report.error().ToString();
    const auto compiled = MustCompile(path, folder.path() / std::to_string(ranks));
    EXPECT_EQ(ParametersOf(compiled.bundle), expected) << ranks << " ranks";
  }
}

// A float repository as a dataset: q and k turned to GGUF's order, the tables of Llama 3.1 kept.
TEST(Dataset, OfARepositoryComputesTheSame) {
  TempDir folder;
  const auto source = model::OpenModel(TinyLlama("hf"));
  ASSERT_TRUE(source.has_value()) << source.error().ToString();
  const std::vector<int32_t> tokens = Tokens(30, 500);
  const std::vector<double> expected = Interpreted(TinyLlama("hf"), tokens);
  for (const int64_t ranks : {1, 2}) {
    const std::filesystem::path path = folder.path() / "tiny.irpa";
    const auto report = compiler::EmitDataset(*source, {path, ranks});
    ASSERT_TRUE(report.has_value()) << report.error().ToString();
    const std::vector<double> logits = Interpreted(path, tokens);
    ASSERT_EQ(logits.size(), expected.size());
    for (size_t i = 0; i < logits.size(); ++i)
      ASSERT_NEAR(logits[i], expected[i], 1e-5) << "logit " << i;  // Tables rounded to float32.
  }
}

}  // namespace
}  // namespace tessera::testing
