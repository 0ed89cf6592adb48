// SPDX-License-Identifier: Apache-2.0
#include "compiler/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <tuple>

#include "compiler/decisions.h"
#include "compiler/module.h"
#include "compiler/pipeline.h"
#include "graph/print.h"
#include "model/build.h"

namespace tessera::compiler {
namespace {

using bundle::Weight;

/// Parts of the module by name, each as text.
using Sections = std::map<std::string, std::string>;

std::string RowOrderText(const Module& module) {
  std::string text;
  for (const auto& [name, runs] : module.row_order)
    text += fmt::format("{}: {} runs over {} rows\n", name, runs.size(), CountRows(runs));
  return text;
}

std::string LinearText(const MatchedLinear& linear) {
  if (linear.weight.empty()) return "none";
  return fmt::format("{} [{}, {}]{}", linear.weight, linear.rows, linear.columns,
                     linear.bias.empty() ? "" : " + " + linear.bias);
}

std::string MatchedText(const MatchedModel& model) {
  std::string text;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const MatchedLayer& layer = model.layers[i];
    text += fmt::format(
        "layer {}: {} heads, {} kv heads, head dim {}\n  q {}\n  k {}\n  v {}\n  output {}\n"
        "  gate {}\n  up {}\n  down {}\n  joined: q/k/v {}, gate/up {}\n",
        i, layer.attention.heads, layer.attention.kv_heads, layer.attention.head_dim,
        LinearText(layer.q), LinearText(layer.k), LinearText(layer.v), LinearText(layer.output),
        LinearText(layer.gate), LinearText(layer.up), LinearText(layer.down),
        layer.join_qkv ? "yes" : "no", layer.join_gate_up ? "yes" : "no");
  }
  if (!model.layers.empty())
    text += fmt::format("embedding {}\nhead {}\n", model.embedding, LinearText(model.head));
  return text;
}

std::string WeightsText(const Module& module) {
  std::string text;
  for (const Weight& weight : module.program.weights)
    text += fmt::format("{:<40} {:<5} {:<5} [{}, {}] segments {}{}{}\n", weight.entry,
                        bundle::LayoutName(weight.layout), tensor::Name(weight.dtype), weight.n,
                        weight.k, weight.segments, weight.note.empty() ? "" : ": ", weight.note);
  return text;
}

Sections SectionsOf(const Module& module) {
  Sections sections;
  sections["graph"] = graph::PrintGraph(module.graph);
  sections["row order"] = RowOrderText(module);
  sections["layers"] = MatchedText(module.matched);
  sections["weights"] = WeightsText(module);
  if (!module.program.steps.empty()) sections["program"] = bundle::WriteProgram(module.program);
  if (module.plan.parameter_bytes > 0)
    sections["memory"] =
        fmt::format("parameters {}\nkv a token {}\nscratch {}\n", module.plan.parameter_bytes,
                    module.plan.kv_bytes_per_token, module.plan.scratch_bytes);
  return sections;
}

std::string ChangesText(const Pass& pass, const Sections& before, const Sections& after) {
  std::string text = fmt::format("# {}: {}\n", pass.name, pass.does);
  bool changed = false;
  for (const auto& [name, section] : after) {
    const auto old = before.find(name);
    if (section.empty() || (old != before.end() && old->second == section)) continue;
    text += fmt::format("\n## {}\n{}", name, section);
    changed = true;
  }
  if (!changed) text += "\nNothing changed.\n";
  return text;
}

std::string FormatsTable(const Module& module) {
  struct Sum {
    int64_t count = 0, elements = 0, bytes = 0;
  };
  std::map<std::tuple<std::string_view, std::string_view, std::string>, Sum> sums;
  for (const Weight& weight : module.program.weights) {
    Sum& sum = sums[{tensor::Name(weight.dtype), bundle::LayoutName(weight.layout), weight.note}];
    ++sum.count;
    sum.elements += weight.n * weight.k;
    sum.bytes += weight.bytes;
  }
  std::string text =
      "| format | layout | weights | elements | bytes | note |\n|---|---|---|---|---|---|\n";
  for (const auto& [key, sum] : sums)
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", std::get<0>(key), std::get<1>(key),
                        sum.count, sum.elements, sum.bytes, std::get<2>(key));
  return text;
}

std::string OptionsTable(const CompileInput& input, const Module& module) {
  const CompileOptions& o = module.options;
  std::string text = "| option | value |\n|---|---|\n";
  const auto row = [&](std::string_view name, const auto& value) {
    text += fmt::format("| {} | {} |\n", name, value);
  };
  row("repository", input.repository);
  row("revision", input.revision.empty() ? "not known" : input.revision);
  row("family", input.source->config.family);
  row("target", o.target);
  row("sharding", fmt::format("tp{}", o.tensor_parallel));
  row("quantize", o.quantize);
  row("max_seq_len", module.max_seq_len);
  row("page_tokens", o.page_tokens);
  row("prefill batch sizes", fmt::format("{}", fmt::join(o.prefill_batch_sizes, ", ")));
  row("decode batch sizes", fmt::format("{}", fmt::join(o.decode_batch_sizes, ", ")));
  if (!o.disabled_passes.empty())
    row("passes left out", fmt::format("{}", fmt::join(o.disabled_passes, ", ")));
  return text;
}

std::string ListText(const std::vector<std::string>& lines) {
  if (lines.empty()) return "None.\n";
  std::string text;
  for (const std::string& line : lines) text += fmt::format("- {}\n", line);
  return text;
}

}  // namespace

Result<Explanation> Explain(const CompileInput& input, const CompileOptions& options,
                            const CompileReport& report) {
  TESSERA_ASSIGN_OR_RETURN(Module module, MakeModule(input, options));
  Explanation explanation;
  std::string passes = "| pass | does | decided | ms |\n|---|---|---|---:|\n";
  Sections before;
  std::vector<CompileReport::PassTime> times;
  TESSERA_RETURN_IF_ERROR(
      RunPipeline(CpuPipeline(), &module, &times, [&](const Pass& pass, const Module& now) {
        Sections after = SectionsOf(now);
        explanation.passes.push_back({std::string(pass.name), ChangesText(pass, before, after)});
        passes += fmt::format("| {} | {} | {} | {:.1f} |\n", pass.name, pass.does,
                              DecisionOf(pass.name, now), times.back().seconds * 1e3);
        before = std::move(after);
      }));
  std::vector<std::string> stages = report.reasons;
  for (const CompileReport::StageTime& stage : report.stages)
    stages.push_back(stage.bytes > 0 ? fmt::format("{}: {} bytes in {:.3f} s", stage.name,
                                                   stage.bytes, stage.seconds)
                                     : fmt::format("{}: {:.3f} s", stage.name, stage.seconds));
  std::vector<std::string> notes = report.notes;
  if (report.reused) notes.insert(notes.end(), module.notes.begin(), module.notes.end());
  explanation.report = fmt::format(
      "# {} for {}\n\n## Asked for\n\n{}\n## Stages\n\n{}\n## Passes\n\nThe module after each is "
      "in `graph/`.\n\n{}\n## Weights\n\n{}\n## Notes\n\n{}",
      input.name, options.target, OptionsTable(input, module), ListText(stages), passes,
      FormatsTable(module), ListText(notes));
  return explanation;
}

}  // namespace tessera::compiler
