// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "bundle/program_verify.h"
#include "compiler/passes/passes.h"

namespace tessera::compiler {
namespace {

using bundle::BufferIndex;
using bundle::BufferKind;
using bundle::Program;
using bundle::WeightIndex;

// The buffers of the program, in this order.
constexpr BufferIndex kStream = 0;
constexpr BufferIndex kQueries = 1;
constexpr BufferIndex kAttended = 2;
constexpr BufferIndex kGated = 3;

/// In the form of its readers where it is made, if they all want the same and every writer owns
/// whole blocks of `owned_columns`; else float32, and each reader converts.
BufferKind KindFor(const Program& program, const std::vector<WeightIndex>& readers,
                   int64_t owned_columns) {
  constexpr int64_t kBlock = 32;
  const auto kind_of = [&](WeightIndex reader) {
    return bundle::InputKind(program.weights[static_cast<size_t>(reader)].dtype);
  };
  const BufferKind kind = kind_of(readers.front());
  const bool same = std::all_of(readers.begin(), readers.end(),
                                [&](WeightIndex reader) { return kind_of(reader) == kind; });
  return same && owned_columns % kBlock == 0 ? kind : BufferKind::kFloat;
}

void LowerBuffers(Module* module) {
  Program& program = module->program;
  const bundle::Dims& d = program.dims;
  const int64_t ffn = PaddedFfnColumns(module->matched.layers[0].down.columns);
  std::vector<WeightIndex> outputs, downs;
  for (const LayerWeights& layer : module->weights.layers) {
    outputs.push_back(layer.output);
    downs.push_back(layer.down);
  }
  const BufferKind attended = KindFor(program, outputs, d.heads / d.kv_heads * d.head_dim);
  const BufferKind gated = KindFor(program, downs, ffn);
  program.buffers = {{"stream", BufferKind::kFloat, d.hidden},
                     {"queries", BufferKind::kFloat, d.heads * d.head_dim},
                     {"attended", attended, d.heads * d.head_dim},
                     {"gated", gated, ffn}};
}

Status LowerDims(Module* module) {
  const MatchedModel& model = module->matched;
  if (model.layers.empty()) return Unimplemented("a model without layers");
  const graph::AttentionAttrs& first = model.layers[0].attention;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const graph::AttentionAttrs& a = model.layers[i].attention;
    if (a.heads != first.heads || a.kv_heads != first.kv_heads || a.head_dim != first.head_dim)
      return Unimplemented(fmt::format("layer {} has other heads than layer 0", i));
    if (model.layers[i].down.columns != model.layers[0].down.columns)
      return Unimplemented(fmt::format("layer {} has another ffn width than layer 0", i));
  }
  module->program.dims = {
      model.hidden,   model.vocab_size, std::ssize(model.layers), first.heads,
      first.kv_heads, first.head_dim,   module->max_seq_len,      module->options.page_tokens};
  return {};
}

void LowerRopes(Module* module) {
  for (const graph::RopeTable& table : module->graph.rope_tables)
    module->program.ropes.push_back(
        {table.rotary_dim, table.inverse_frequency, table.attention_factor});
}

bundle::QkvStep LowerQkv(const MatchedLayer& layer, const LayerWeights& weights, int64_t index) {
  bundle::QkvStep step;
  step.layer = index;
  step.in = kStream;
  step.out = kQueries;
  step.norm = {weights.attention_norm, layer.attention_norm.eps};
  step.q = weights.q;
  step.k = weights.k;
  step.v = weights.v;
  step.bias = weights.qkv_bias;
  if (weights.q_norm) step.q_norm = {*weights.q_norm, layer.q_norm->eps};
  if (weights.k_norm) step.k_norm = {*weights.k_norm, layer.k_norm->eps};
  if (layer.rope) step.rope = *layer.rope;
  return step;
}

void LowerLayer(const MatchedLayer& layer, const LayerWeights& weights, int64_t index,
                std::vector<bundle::Step>* steps) {
  const auto push = [&](std::string_view name, auto op) {
    steps->push_back({fmt::format("layer{}.{}", index, name), std::move(op), "", ""});
  };
  push("qkv", LowerQkv(layer, weights, index));
  bundle::AttentionStep attention{index, kQueries, kAttended, layer.attention.scale, 0, 0};
  attention.window = layer.attention.window.value_or(0);
  attention.softcap = layer.attention.softcap.value_or(0);
  push("attention", attention);
  push("attn_out", bundle::ProjectStep{kAttended, kStream, weights.output, weights.output_bias});
  push("gated", bundle::GatedStep{kStream,
                                  kGated,
                                  {weights.ffn_norm, layer.ffn_norm.eps},
                                  layer.activation,
                                  weights.gate,
                                  weights.up});
  push("down", bundle::ProjectStep{kGated, kStream, weights.down, weights.down_bias});
}

}  // namespace

Status LowerSteps(Module* module) {
  Program& program = module->program;
  TESSERA_RETURN_IF_ERROR(LowerDims(module));
  LowerBuffers(module);
  LowerRopes(module);
  program.steps.push_back(
      {"embed",
       bundle::EmbedStep{module->weights.embedding, kStream, module->matched.embedding_scale}, "",
       ""});
  for (size_t i = 0; i < module->matched.layers.size(); ++i)
    LowerLayer(module->matched.layers[i], module->weights.layers[i], static_cast<int64_t>(i),
               &program.steps);
  program.steps.push_back(
      {"head",
       bundle::HeadStep{kStream,
                        {module->weights.final_norm, module->matched.final_norm.eps},
                        module->weights.head},
       "", ""});
  return {};
}

}  // namespace tessera::compiler
