// SPDX-License-Identifier: Apache-2.0
#include "compiler/decisions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/topology.h"
#include "tensor/dtype.h"

namespace tessera::compiler {
namespace {

using bundle::Weight;

std::string Graph(const Module& module) {
  return fmt::format("{} operations, none breaks a rule", module.graph.nodes.size());
}

std::string RopeStyle(const Module& module) {
  if (module.row_order.empty())
    return "nothing to reorder: the source's pairs are half-split already";
  return fmt::format(
      "{} parameters of q and k get another order of rows, because the source pairs neighbours",
      module.row_order.size());
}

std::string Layers(const Module& module) {
  const MatchedModel& model = module.matched;
  std::set<std::string> attentions;
  for (const MatchedLayer& layer : model.layers)
    attentions.insert(fmt::format("{} heads over {} KV heads of {}", layer.attention.heads,
                                  layer.attention.kv_heads, layer.attention.head_dim));
  return fmt::format("{} layers, {}; the head {}", model.layers.size(),
                     fmt::join(attentions, " or "),
                     model.head.weight == model.embedding ? "is the embedding table (tied)"
                                                          : "has a matrix of its own");
}

/// "120 x Q4_1 as the source has them; 4 x BF16 -> F32: why"
std::string Formats(const Module& module) {
  std::map<std::string, int64_t> counts;
  for (const auto& [name, format] : module.formats) {
    const std::string_view target = tensor::Name(format.dtype);
    std::string what = fmt::format("{} as the source has it", target);
    if (!format.note.empty())
      what = fmt::format("{} -> {}", tensor::Name(module.index->Find(name)->dtype), target);
    if (format.is_quantised) what += fmt::format(", for --quantize {}", module.options.quantize);
    if (!format.why.empty()) what += fmt::format(": {}", format.why);
    ++counts[what];
  }
  std::vector<std::string> texts;
  for (const auto& [what, count] : counts) texts.push_back(fmt::format("{} x {}", count, what));
  return fmt::format("{}", fmt::join(texts, "; "));
}

/// Of matrices that could be one.
std::string FormatsOf(const Module& module, std::initializer_list<const MatchedLinear*> all) {
  std::vector<std::string_view> names;
  for (const MatchedLinear* linear : all)
    names.push_back(tensor::Name(module.formats.at(linear->weight).dtype));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string Joins(const Module& module) {
  const auto& layers = module.matched.layers;
  const auto count = [&](bool MatchedLayer::*joined) {
    return std::ranges::count_if(layers, joined);
  };
  std::string text =
      fmt::format("of {} layers q/k/v are one matrix in {}, gate/up in {}", layers.size(),
                  count(&MatchedLayer::join_qkv), count(&MatchedLayer::join_gate_up));
  const auto apart = std::ranges::find(layers, false, &MatchedLayer::join_qkv);
  if (apart != layers.end())
    text += fmt::format("; q/k/v of layer {} stay apart: {}", apart - layers.begin(),
                        FormatsOf(module, {&apart->q, &apart->k, &apart->v}));
  const auto split = std::ranges::find(layers, false, &MatchedLayer::join_gate_up);
  if (split != layers.end())
    text += fmt::format("; gate/up of layer {} stay apart: {}", split - layers.begin(),
                        FormatsOf(module, {&split->gate, &split->up}));
  return text;
}

std::string Weights(const Module& module) {
  const auto& weights = module.program.weights;
  const auto vectors = std::ranges::count_if(weights, [](const Weight& w) { return w.n == 1; });
  std::string text =
      fmt::format("{} matrices and {} vectors of {} parameters", std::ssize(weights) - vectors,
                  vectors, module.index->entries().size());
  for (const LayerWeights& layer : module.weights.layers) {
    const Weight& down = module.program.weights[static_cast<size_t>(layer.down)];
    const int64_t columns = module.matched.layers[0].down.columns;
    if (down.k == columns) continue;
    return text + fmt::format("; gated columns padded with zeros from {} to {}, whole groups",
                              columns, down.k);
  }
  return text;
}

std::string Segments(const Module& module) {
  std::set<std::string> output, down;
  for (size_t i = 0; i < module.weights.layers.size(); ++i) {
    const LayerWeights& layer = module.weights.layers[i];
    const Weight& out = module.program.weights[static_cast<size_t>(layer.output)];
    const Weight& ffn = module.program.weights[static_cast<size_t>(layer.down)];
    output.insert(
        fmt::format("{} ({} KV heads)", out.segments, module.matched.layers[i].attention.kv_heads));
    down.insert(fmt::format("{} ({} blocks of 32 inputs)", ffn.segments, ffn.k / 32));
  }
  return fmt::format(
      "segments: attention output {}, down projection {}: so many that each number of ranks up to "
      "8 that divides them gets whole ones, and none cuts a block, so that all add in one order",
      fmt::join(output, " or "), fmt::join(down, " or "));
}

std::string Steps(const Module& module) {
  return fmt::format("{} steps over {} buffers", module.program.steps.size(),
                     module.program.buffers.size());
}

std::string Kernels(const Module& module) {
  // By what they are for: one row is a step of generation, more are a prompt or a batch.
  std::set<std::string> one, many, any;
  for (const bundle::Step& step : module.program.steps) {
    if (step.kernel_one.empty()) continue;
    (step.kernel_one == step.kernel_many ? any : one).insert(step.kernel_one);
    if (step.kernel_one != step.kernel_many) many.insert(step.kernel_many);
  }
  std::vector<std::string> texts;
  if (!one.empty()) texts.push_back(fmt::format("one row: {}", fmt::join(one, ", ")));
  if (!many.empty()) texts.push_back(fmt::format("more rows: {}", fmt::join(many, ", ")));
  if (!any.empty()) texts.push_back(fmt::format("any: {}", fmt::join(any, ", ")));
  const std::string& target = module.options.target;
  return fmt::format(
      "the best that {} runs ({}); another machine takes its own best, with the same bits. {}",
      target == "cpu" ? "this machine" : target,
      target == "cpu" ? ReadIsa().ToString() : "at the least", fmt::join(texts, "; "));
}

std::string Memory(const Module& module) {
  return fmt::format("{} bytes of parameters, {} of KV a token, {} of scratch",
                     module.plan.parameter_bytes, module.plan.kv_bytes_per_token,
                     module.plan.scratch_bytes);
}

struct Teller {
  std::string_view pass;
  std::string (*tell)(const Module&);
};
constexpr Teller kTellers[] = {{"verify-graph", Graph},       {"unify-rope-style", RopeStyle},
                               {"match-layers", Layers},      {"choose-formats", Formats},
                               {"join-projections", Joins},   {"fuse-weights", Weights},
                               {"assign-segments", Segments}, {"lower-steps", Steps},
                               {"choose-kernels", Kernels},   {"plan-memory", Memory}};

}  // namespace

std::string DecisionOf(std::string_view pass, const Module& module) {
  const auto* teller = std::ranges::find(kTellers, pass, &Teller::pass);
  return teller == std::end(kTellers) ? std::string() : teller->tell(module);
}

}  // namespace tessera::compiler
