// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_work.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <variant>

namespace tessera::runtime {

using bundle::Program;
using bundle::WeightIndex;

uint64_t StepWork::macs() const {
  return std::accumulate(matmul_macs.begin(), matmul_macs.end(), attention_macs,
                         [](uint64_t sum, const auto& format) { return sum + format.second; });
}

ProgramWork::ProgramWork(const Program& program, kernels::KvType kv_type) {
  const bundle::Dims& dims = program.dims;
  const kernels::KvLayout layer = {1, dims.kv_heads, dims.head_dim, dims.page_tokens, kv_type};
  // Joined matrices serve several projections.
  std::set<WeightIndex> layer_weights, last_weights, head_weights;
  const auto attentions = std::count_if(
      program.steps.begin(), program.steps.end(),
      [](const auto& s) { return std::holds_alternative<bundle::AttentionStep>(s.op); });
  const auto add = [&](Part* part, std::set<WeightIndex>* seen, WeightIndex index, int64_t rows) {
    const bundle::Weight& weight = program.weights[static_cast<size_t>(index)];
    if (seen->insert(index).second) part->bytes += static_cast<uint64_t>(weight.bytes);
    part->macs_per_row[weight.dtype] += static_cast<uint64_t>(rows * weight.k);
  };
  const auto rows_of = [&](WeightIndex index) {
    return program.weights[static_cast<size_t>(index)].n;
  };
  for (const bundle::Step& step : program.steps) {
    const bool last = std::ssize(attentions_) == attentions;
    Part* part = last ? &last_ : &layers_;
    std::set<WeightIndex>* seen = last ? &last_weights : &layer_weights;
    if (const auto* qkv = std::get_if<bundle::QkvStep>(&step.op)) {
      add(&layers_, &layer_weights, qkv->q.weight, dims.heads * dims.head_dim);
      add(&layers_, &layer_weights, qkv->k.weight, dims.kv_heads * dims.head_dim);
      add(&layers_, &layer_weights, qkv->v.weight, dims.kv_heads * dims.head_dim);
    } else if (const auto* project = std::get_if<bundle::ProjectStep>(&step.op)) {
      add(part, seen, project->weight, rows_of(project->weight));
    } else if (const auto* gated = std::get_if<bundle::GatedStep>(&step.op)) {
      add(part, seen, gated->gate, rows_of(gated->gate));
      if (gated->up) add(part, seen, *gated->up, rows_of(*gated->up));
    } else if (const auto* head = std::get_if<bundle::HeadStep>(&step.op)) {
      add(&head_, &head_weights, head->weight, rows_of(head->weight));
    } else if (const auto* attention = std::get_if<bundle::AttentionStep>(&step.op)) {
      attentions_.push_back({attention->window,
                             static_cast<uint64_t>(2 * dims.heads * dims.head_dim),
                             static_cast<uint64_t>(layer.PageBytes() / layer.page_tokens)});
    }
  }
}

void ProgramWork::AddAttention(const Attention& attention, const ChunkShape& chunk, int64_t rows,
                               StepWork* work) {
  if (rows == 0) return;
  const auto first_seen_from = [&](int64_t position) {
    return attention.window > 0 ? std::max<int64_t>(position + 1 - attention.window, 0) : 0;
  };
  const int64_t end = chunk.start + chunk.rows, start = end - rows;
  work->kv_bytes +=
      static_cast<uint64_t>(end - first_seen_from(start)) * attention.bytes_per_position;
  for (int64_t position = start; position < end; ++position)
    work->attention_macs += static_cast<uint64_t>(position + 1 - first_seen_from(position)) *
                            attention.macs_per_position;
}

StepWork ProgramWork::Of(std::span<const ChunkShape> chunks) const {
  StepWork work;
  uint64_t rows = 0, logit_rows = 0;
  for (const ChunkShape& chunk : chunks) {
    rows += static_cast<uint64_t>(chunk.rows);
    logit_rows += static_cast<uint64_t>(chunk.logit_rows);
    for (size_t i = 0; i < attentions_.size(); ++i) {
      const bool last = i + 1 == attentions_.size();
      AddAttention(attentions_[i], chunk, last ? chunk.logit_rows : chunk.rows, &work);
    }
  }
  const auto add = [&](const Part& part, uint64_t part_rows) {
    if (part_rows == 0) return;
    work.weight_bytes += part.bytes;
    for (const auto& [dtype, macs] : part.macs_per_row) work.matmul_macs[dtype] += macs * part_rows;
  };
  add(layers_, rows);
  add(last_, logit_rows);
  add(head_, logit_rows);
  return work;
}

double ArithmeticSeconds(const StepWork& work, const MachineRates& rates) {
  double seconds = 2 * static_cast<double>(work.attention_macs) / rates.float_ops;
  for (const auto& [dtype, macs] : work.matmul_macs)
    seconds += 2 * static_cast<double>(macs) / rates.MatmulOps(dtype);
  return seconds;
}

double BoundSeconds(const StepWork& work, const MachineRates& rates) {
  return std::max(static_cast<double>(work.bytes()) / rates.read_bytes,
                  ArithmeticSeconds(work, rates));
}

}  // namespace tessera::runtime
