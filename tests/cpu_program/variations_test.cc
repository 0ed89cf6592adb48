// SPDX-License-Identifier: Apache-2.0
//
// Every variation of the model vocabulary that the CPU target computes, and every mixture of weight
// formats, against the reference interpreter; what it does not compute is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph/interpreter.h"
#include "harness.h"
#include "model/build.h"
#include "model/index_weights.h"
#include "synthetic_model.h"

namespace tessera::testing {
namespace {

using tensor::DType;
using ::testing::HasSubstr;

const std::vector<int32_t> kTokens = {1, 99, 50, 50, 3, 17, 64, 2, 81, 33, 5, 90, 8, 8, 70, 41};

class Variations : public ::testing::Test {
 protected:
  /// Root mean square of the difference to the interpreter, over that of the logits.
  double RelativeError(const model::ModelConfig& config, const TypeOf& type_of) {
    const model::ModelSource source = MakeSynthetic(config, type_of, dir_.path() / "model.gguf");
    const auto graph = model::BuildGraph(source.config, source.index);
    EXPECT_TRUE(graph.has_value()) << graph.error().ToString();
    model::IndexWeights weights(source.index);
    graph::Interpreter interpreter(*graph, weights);
    const auto expected = interpreter.Run(kTokens);
    EXPECT_TRUE(expected.has_value()) << expected.error().ToString();
    const auto report = CompileSynthetic(source, dir_.path());
    EXPECT_TRUE(report.has_value()) << report.error().ToString();
    if (!expected.has_value() || !report.has_value()) return 1;
    const auto session = MustLoad(report->bundle, {.threads = 2});
    const Logits logits = RunAll(session.get(), kTokens, 16);
    EXPECT_EQ(RunAll(session.get(), kTokens, 3), logits);
    double error = 0, size = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      error += std::pow(static_cast<double>(logits[i]) - (*expected)[i], 2);
      size += std::pow((*expected)[i], 2);
    }
    return std::sqrt(error / size);
  }
  std::string CompileError(const model::ModelConfig& config) {
    const model::ModelSource source =
        MakeSynthetic(config, AllMatrices(DType::kF32), dir_.path() / "model.gguf");
    const auto report = CompileSynthetic(source, dir_.path());
    return report.has_value() ? "compiled" : report.error().ToString();
  }
  TempDir dir_;
};

// F32 weights leave the f16 KV cache as the only rounding worth the name.
constexpr double kFloatError = 2e-3;
// Activations of 8 bits of precision, over a dozen matmuls.
constexpr double kBFloat16Error = 1e-2;
// 8-bit activations: about 1/254 of a block's largest value each, over a dozen matmuls.
constexpr double kQuantisedError = 0.05;

TEST_F(Variations, WeightsWithoutKernelsKeepTheirCodes) {
  EXPECT_LE(RelativeError(SyntheticConfig(), AllMatrices(DType::kIQ4_NL)), kQuantisedError);
}

TEST_F(Variations, PlainLlamaWithInterleavedRope) {
  EXPECT_LE(RelativeError(SyntheticConfig(), AllMatrices(DType::kF32)), kFloatError);
}

TEST_F(Variations, HalfSplitRopeOfSomeOfTheHead) {
  model::ModelConfig config = SyntheticConfig();
  config.rope.style = graph::RopeStyle::kHalf;
  config.rope.rotary_dim = 8;
  EXPECT_LE(RelativeError(config, AllMatrices(DType::kF32)), kFloatError);
}

TEST_F(Variations, InterleavedRopeOfSomeOfTheHeadWithBiasAndHeadNorms) {
  model::ModelConfig config = SyntheticConfig();
  config.rope.rotary_dim = 8;
  config.attention.qkv_bias = true;
  config.attention.output_bias = true;
  config.attention.qk_norm = true;
  EXPECT_LE(RelativeError(config, AllMatrices(DType::kF32)), kFloatError);
}

TEST_F(Variations, TiedScaledEmbeddingAndGelu) {
  model::ModelConfig config = SyntheticConfig();
  config.embedding.tied = true;
  config.embedding.scale = 8;
  config.ffn.activation = model::Activation::kGeluTanh;
  EXPECT_LE(RelativeError(config, AllMatrices(DType::kF32)), kFloatError);
}

TEST_F(Variations, WindowInSomeLayersAndSoftcap) {
  model::ModelConfig config = SyntheticConfig();
  config.attention.window = 5;
  config.attention.window_layers = {true, false};
  config.attention.softcap = 2;
  EXPECT_LE(RelativeError(config, AllMatrices(DType::kF32)), kFloatError);
}

TEST_F(Variations, OneKvHeadForAllAndOneForEach) {
  for (const int64_t kv_heads : {1, 4}) {
    model::ModelConfig config = SyntheticConfig();
    config.attention.kv_heads = kv_heads;
    EXPECT_LE(RelativeError(config, AllMatrices(DType::kF32)), kFloatError) << kv_heads;
    EXPECT_LE(RelativeError(config, AllMatrices(DType::kQ8_0)), kQuantisedError) << kv_heads;
  }
}

TEST_F(Variations, EveryFormatThatWeCanWrite) {
  EXPECT_LE(RelativeError(SyntheticConfig(), AllMatrices(DType::kF16)), kFloatError);
  EXPECT_LE(RelativeError(WideSyntheticConfig(), AllMatrices(DType::kBF16)), kBFloat16Error);
  for (const DType type : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1})
    EXPECT_LE(RelativeError(SyntheticConfig(), AllMatrices(type)), kQuantisedError)
        << tensor::Name(type);
}

TEST_F(Variations, FormatsMixedAsInMediumFiles) {
  // Values, up and down in another block format, as Q4_K_M files have.
  const TypeOf mixed = [](const std::string& name, const tensor::Shape& shape) {
    if (shape.rank() == 1) return DType::kF32;
    const bool better = name.find("attn_v") != std::string::npos ||
                        name.find("ffn_up") != std::string::npos ||
                        name.find("blk.1.ffn_down") != std::string::npos;
    return better ? DType::kQ8_0 : DType::kQ4_1;
  };
  EXPECT_LE(RelativeError(SyntheticConfig(), mixed), kQuantisedError);
}

TEST_F(Variations, BFloat16BesideOtherFloatsOfTheSameInput) {
  const TypeOf mixed = [](const std::string& name, const tensor::Shape& shape) {
    if (shape.rank() == 1) return DType::kF32;
    if (name.find("attn_k") != std::string::npos) return DType::kF16;
    return name.find("ffn_up") != std::string::npos ? DType::kF32 : DType::kBF16;
  };
  EXPECT_LE(RelativeError(WideSyntheticConfig(), mixed), kBFloat16Error);
}

// As in files whose makers keep single matrices in floats, and in Q2_K files, whose Q2_K becomes
// F16 beside values in Q4_K. One step then reads the same rows as int8, as bfloat16 and as float32.
TEST_F(Variations, FormatsOfEveryFormOfTheSameInput) {
  const TypeOf in_layer_0 = [](const std::string& name, const tensor::Shape& shape) {
    if (shape.rank() == 1) return DType::kF32;
    const bool first = name.find("blk.0.") != std::string::npos;
    if (name.find("attn_q") != std::string::npos) return first ? DType::kQ4_0 : DType::kF16;
    if (name.find("attn_k") != std::string::npos) return first ? DType::kBF16 : DType::kQ4_1;
    if (name.find("attn_v") != std::string::npos) return first ? DType::kF16 : DType::kQ8_0;
    if (name.find("ffn_gate") != std::string::npos) return first ? DType::kQ8_0 : DType::kBF16;
    if (name.find("ffn_up") != std::string::npos) return first ? DType::kBF16 : DType::kF32;
    return DType::kQ8_0;
  };
  EXPECT_LE(RelativeError(WideSyntheticConfig(), in_layer_0), kQuantisedError);
  EXPECT_LE(RelativeError(SyntheticConfig(), in_layer_0), kQuantisedError);
}

TEST_F(Variations, FloatAndBlockFormatsMixedBetweenLayers) {
  const TypeOf mixed = [](const std::string& name, const tensor::Shape& shape) {
    if (shape.rank() == 1) return DType::kF32;
    return name.find("blk.0.") != std::string::npos ? DType::kF16 : DType::kQ8_0;
  };
  EXPECT_LE(RelativeError(SyntheticConfig(), mixed), kQuantisedError);
}

TEST_F(Variations, WhatTheTargetDoesNotComputeIsRefusedByName) {
  model::ModelConfig config = SyntheticConfig();
  config.residual_scale = 0.5;
  EXPECT_THAT(CompileError(config), HasSubstr("is not what the cpu target computes here"));
  config = SyntheticConfig();
  config.logit_softcap = 30;
  EXPECT_THAT(CompileError(config), HasSubstr("is not what the cpu target computes here"));
  config = SyntheticConfig();
  config.ffn.gated = false;
  EXPECT_THAT(CompileError(config), HasSubstr("expected gate and up projections"));
  config = SyntheticConfig();
  config.attention.head_dim = 12;
  config.rope.rotary_dim = 12;
  EXPECT_THAT(CompileError(config), HasSubstr("head_dim 12"));
}

}  // namespace
}  // namespace tessera::testing
