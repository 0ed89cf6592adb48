// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/model_argument.h"

#include "bundle/bundle.h"
#include "compiler/compile.h"
#include "kernels/pack.h"
#include "model/build.h"
#include "model/footprint.h"
#include "model/open.h"

namespace tessera::cli {
namespace {

constexpr uint64_t kKvElementBytes = 2;  // float16

using BytesByFormat = std::map<tensor::DType, uint64_t>;

tensor::DType MainFormat(const BytesByFormat& bytes) {
  const auto best = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return best == bytes.end() ? tensor::DType::kF32 : best->first;
}

Result<PlanFacts> ReadRepository(const std::string& path, int64_t context) {
  TESSERA_ASSIGN_OR_RETURN(const model::ModelSource source, model::OpenModel(path));
  TESSERA_ASSIGN_OR_RETURN(const graph::Graph graph,
                           model::BuildGraph(source.config, source.index));
  const model::Footprint footprint = model::ComputeFootprint(source.config, source.index, graph);
  BytesByFormat bytes;
  for (const auto& entry : source.index.entries())
    if (entry.shape.rank() == 2) bytes[entry.dtype] += entry.bytes;
  PlanFacts facts;
  facts.name = source.config.family;
  facts.parameters = footprint.parameters;
  facts.layer_weights = footprint.parameters - footprint.embedding_parameters;
  facts.format = MainFormat(bytes);
  facts.has_kernels = kernels::CanPack(facts.format, source.config.hidden);
  TESSERA_ASSIGN_OR_RETURN(facts.context,
                           compiler::ContextLength(context, source.config.context_length));
  facts.weight_bytes = footprint.weight_bytes();
  facts.bytes_read_per_step = footprint.bytes_read_per_step;
  facts.kv_bytes = model::KvBytes(source.config, facts.context, kKvElementBytes);
  facts.kv_bytes_per_token = model::KvBytesPerToken(source.config, kKvElementBytes);
  facts.source_bytes = source.index.total_bytes();
  facts.bundle_bytes = footprint.weight_bytes();
  facts.warnings = source.warnings;
  return facts;
}

/// The tables that give a step its first and last rows.
struct Ends {
  bundle::WeightIndex table = -1;
  bundle::WeightIndex head = -1;
};

Ends FindEnds(const bundle::Program& program) {
  Ends ends;
  for (const bundle::Step& step : program.steps) {
    if (const auto* embed = std::get_if<bundle::EmbedStep>(&step.op)) ends.table = embed->table;
    if (const auto* head = std::get_if<bundle::HeadStep>(&step.op)) ends.head = head->weight;
  }
  return ends;
}

Result<PlanFacts> ReadBundle(const std::string& path, int64_t context) {
  TESSERA_ASSIGN_OR_RETURN(const bundle::Bundle bundle,
                           bundle::OpenBundle(path, bundle::Check::kSizesAndSmallFiles));
  const bundle::Program& program = bundle.program;
  const Ends ends = FindEnds(program);
  PlanFacts facts;
  BytesByFormat bytes;
  for (size_t i = 0; i < program.weights.size(); ++i) {
    const bundle::Weight& weight = program.weights[i];
    const auto index = static_cast<bundle::WeightIndex>(i);
    facts.parameters += weight.n * weight.k;
    if (index != ends.table && index != ends.head) facts.layer_weights += weight.n * weight.k;
    facts.weight_bytes += static_cast<uint64_t>(weight.bytes);
    // Of the embedding table a step reads one row a token, unless the table is the head too.
    if (index != ends.table || index == ends.head)
      facts.bytes_read_per_step += static_cast<uint64_t>(weight.bytes);
    if (weight.n > 1) bytes[weight.dtype] += static_cast<uint64_t>(weight.bytes);
  }
  facts.name = bundle.manifest.model;
  facts.format = MainFormat(bytes);
  facts.has_kernels = kernels::CanPack(facts.format, program.dims.hidden);
  TESSERA_ASSIGN_OR_RETURN(facts.context,
                           compiler::ContextLength(context, program.dims.max_seq_len));
  facts.kv_bytes_per_token = static_cast<uint64_t>(program.dims.layers * program.dims.kv_heads *
                                                   program.dims.head_dim * 2) *
                             kKvElementBytes;
  facts.kv_bytes = facts.kv_bytes_per_token * static_cast<uint64_t>(facts.context);
  for (const bundle::FileRecord& file : bundle.manifest.files) facts.bundle_bytes += file.bytes;
  return facts;
}

}  // namespace

Result<PlanFacts> ReadPlanFacts(const std::string& model, const HubOptions& hub, int64_t context) {
  TESSERA_ASSIGN_OR_RETURN(const ResolvedModel resolved,
                           ResolveModel(model, hub, /*cache_dir=*/"", ModelNeed::kHeaders));
  return resolved.kind == ModelKind::kBundle ? ReadBundle(resolved.path, context)
                                             : ReadRepository(resolved.path, context);
}

}  // namespace tessera::cli
