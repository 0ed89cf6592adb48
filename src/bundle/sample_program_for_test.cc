// SPDX-License-Identifier: Apache-2.0
#include "bundle/sample_program_for_test.h"

#include <fmt/format.h>

namespace tessera::bundle {
namespace {

using tensor::DType;

constexpr int64_t kHidden = 64, kFfn = 96, kVocabulary = 40;

WeightIndex Add(Program* program, std::string entry, WeightLayout layout, DType dtype, int64_t n,
                int64_t k, int64_t segments = 1) {
  const tensor::DTypeInfo& info = tensor::Info(dtype);
  const int64_t rows = layout == WeightLayout::kPacked8 ? (n + 7) / 8 * 8 : n;
  const int64_t bytes = rows * (k / info.block_elements) * info.block_bytes;
  program->weights.push_back({entry, layout, dtype, n, k, segments, bytes, {{entry, 0, n}}, ""});
  return std::ssize(program->weights) - 1;
}

Norm AddNorm(Program* program, std::string entry, int64_t k) {
  return {Add(program, std::move(entry), WeightLayout::kRows, DType::kF32, 1, k), 1e-5};
}

void AddLayer(Program* program, int64_t layer) {
  const auto name = [&](std::string_view what) { return fmt::format("layer{}.{}", layer, what); };
  const auto packed = WeightLayout::kPacked8;
  QkvStep qkv{layer, 0, 1, AddNorm(program, name("attn_norm"), kHidden), {}, {}, {}, {}, {}, {}, 0};
  const WeightIndex fused = Add(program, name("qkv"), packed, DType::kQ8_0, 128, kHidden);
  qkv.q = {fused, 0, 16};
  qkv.k = {fused, 64, 32};
  qkv.v = {fused, 80, 32};
  qkv.bias = Add(program, name("qkv_bias"), WeightLayout::kRows, DType::kF32, 1, 128);
  qkv.q_norm = AddNorm(program, name("q_norm"), 16);
  program->steps.push_back({name("qkv"), qkv, "matmul.one", "matmul.many"});
  program->steps.push_back({name("attention"), AttentionStep{layer, 1, 2, 0.25, 0, 0}, "", ""});
  const WeightIndex output = Add(program, name("attn_out"), packed, DType::kQ4_1, kHidden, 64, 2);
  program->steps.push_back({name("attn_out"), ProjectStep{2, 0, output, {}}, "", ""});
  GatedStep gated{0, 3, AddNorm(program, name("ffn_norm"), kHidden), Activation::kSilu, 0, {}};
  gated.gate = Add(program, name("gate_up"), packed, DType::kQ8_0, 2 * kFfn, kHidden);
  program->steps.push_back({name("ffn"), gated, "", ""});
  const WeightIndex down = Add(program, name("down"), packed, DType::kF16, kHidden, kFfn, 3);
  program->steps.push_back({name("down"), ProjectStep{3, 0, down, {}}, "", ""});
}

}  // namespace

Program SampleProgram() {
  Program program;
  program.dims = {kHidden, kVocabulary, 2, 4, 2, 16, 128, 32};
  program.ropes = {{16, {1.0, 0.1, 1.0 / 3, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7}, 1.1}};
  program.buffers = {{"x", BufferKind::kFloat, kHidden},
                     {"q", BufferKind::kFloat, 64},
                     {"attn", BufferKind::kQuantised, 64},
                     {"ffn", BufferKind::kFloat, kFfn}};
  const WeightIndex table =
      Add(&program, "token_embd", WeightLayout::kPacked8, DType::kQ8_0, kVocabulary, kHidden);
  program.steps.push_back({"embed", EmbedStep{table, 0, 1}, "", ""});
  for (int64_t layer = 0; layer < program.dims.layers; ++layer) AddLayer(&program, layer);
  const Norm norm = AddNorm(&program, "final_norm", kHidden);
  program.steps.push_back({"head", HeadStep{0, norm, table}, "", ""});
  return program;
}

}  // namespace tessera::bundle
