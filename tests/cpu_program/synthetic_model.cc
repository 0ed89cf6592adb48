// SPDX-License-Identifier: Apache-2.0
#include "synthetic_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/random.h"
#include "formats/gguf/writer.h"
#include "formats/open.h"
#include "model/build.h"
#include "tensor/convert.h"
#include "tensor/quantise.h"

namespace tessera::testing {
namespace {

std::vector<float> RandomValues(const tensor::Shape& shape, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  const double deviation =
      shape.rank() == 1 ? 0.2 : 1 / std::sqrt(static_cast<double>(shape.columns()));
  const double center = shape.rank() == 1 ? 1 : 0;  // Norms; a bias of one is as good as any.
  for (float& value : values) value = static_cast<float>(center + deviation * random.Normal());
  return values;
}

/// IQ4_NL has no encoder here: the codes of Q4_0 mean other values of about 16 times the size.
Result<std::vector<std::byte>> Encode(tensor::DType type, const std::vector<float>& values) {
  if (type != tensor::DType::kIQ4_NL) return tensor::Quantise(type, values);
  auto encoded = tensor::Quantise(tensor::DType::kQ4_0, values);
  constexpr size_t kBlockBytes = 18;  // Of both: an f16 scale and 16 bytes of codes.
  for (size_t at = 0; encoded.has_value() && at < encoded->size(); at += kBlockBytes) {
    uint16_t scale;
    std::memcpy(&scale, encoded->data() + at, sizeof(scale));
    scale = tensor::FloatToHalf(tensor::HalfToFloat(scale) / 16);
    std::memcpy(encoded->data() + at, &scale, sizeof(scale));
  }
  return encoded;
}

}  // namespace

model::ModelConfig SyntheticConfig() {
  model::ModelConfig config;
  config.family = "llama";
  config.naming = model::Naming::kGguf;
  config.layers = 2;
  config.hidden = 64;
  config.vocab_size = 100;
  config.context_length = 256;
  config.norm_eps = 1e-5;
  config.attention.heads = 4;
  config.attention.kv_heads = 2;
  config.attention.head_dim = 16;
  config.attention.scale = 0.25;
  config.rope.rotary_dim = 16;
  config.rope.style = graph::RopeStyle::kInterleaved;
  config.ffn.intermediate = 96;
  return config;
}

model::ModelConfig WideSyntheticConfig() {
  model::ModelConfig config = SyntheticConfig();
  config.hidden = 512;
  config.attention.head_dim = 128;
  config.rope.rotary_dim = 128;
  config.ffn.intermediate = 544;
  config.context_length = 2048;
  return config;
}

TypeOf AllMatrices(tensor::DType matrix) {
  return [matrix](const std::string&, const tensor::Shape& shape) {
    return shape.rank() == 1 ? tensor::DType::kF32 : matrix;
  };
}

model::ModelSource MakeSynthetic(const model::ModelConfig& config, const TypeOf& type_of,
                                 const std::filesystem::path& file, uint64_t seed) {
  model::ModelSource source;
  const auto graph = model::BuildGraph(config);
  EXPECT_TRUE(graph.has_value()) << graph.error().ToString();
  if (!graph.has_value()) return source;
  std::vector<std::vector<std::byte>> bytes;
  std::vector<formats::gguf::WriteTensor> tensors;
  for (const graph::Node& node : graph->nodes) {
    if (node.op != graph::Op::kParameter) continue;
    const auto& name = node.As<graph::ParameterAttrs>().name;
    const tensor::DType type = type_of(name, node.type.dims);
    const auto encoded = Encode(type, RandomValues(node.type.dims, bytes.size() + seed));
    EXPECT_TRUE(encoded.has_value()) << encoded.error().ToString();
    bytes.push_back(*encoded);
    tensors.push_back({name, {type, node.type.dims, bytes.back()}});
  }
  const Status written = formats::gguf::Write(file, {}, tensors);
  EXPECT_TRUE(written.ok()) << written.ToString();
  auto index = formats::Open(file);
  EXPECT_TRUE(index.has_value()) << index.error().ToString();
  source.path = file;
  source.config = config;
  if (index.has_value()) source.index = *std::move(index);
  return source;
}

Result<compiler::CompileReport> CompileSynthetic(const model::ModelSource& source,
                                                 const std::filesystem::path& cache) {
  compiler::CompileInput input;
  input.source = &source;
  input.name = "synthetic";
  input.tokenizer_json = "{}";
  return compiler::Compile(input, {}, bundle::Store(cache));
}

}  // namespace tessera::testing
