// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kernels/pack.h"
#include "runtime/limits.h"
#include "runtime/steps/steps.h"

namespace tessera::runtime {
namespace {

using bundle::BufferKind;

uint64_t BufferBytes(BufferKind kind, int64_t rows, int64_t columns) {
  switch (kind) {
    case BufferKind::kQuantised:
      return static_cast<uint64_t>(kernels::QuantisedRowsBytes(rows, columns));
    case BufferKind::kBFloat16:
      return static_cast<uint64_t>(kernels::BFloat16RowsBytes(rows, columns));
    case BufferKind::kFloat:
      break;
  }
  return static_cast<uint64_t>(rows * columns) * sizeof(float);
}

/// Rows that a step prepares for its matmul, in any form.
uint64_t PreparedBytes(int64_t rows, int64_t columns) {
  const uint64_t bytes = std::max(BufferBytes(BufferKind::kFloat, rows, columns),
                                  BufferBytes(BufferKind::kBFloat16, rows, columns));
  if (columns % kernels::kBlock != 0) return bytes;  // No int8 form, and no weight wants it.
  return std::max(bytes, BufferBytes(BufferKind::kQuantised, rows, columns));
}

/// The norm that writes rows of this kind.
kernels::RmsNormFn NormFor(const kernels::RowKernels& kernels, BufferKind kind) {
  switch (kind) {
    case BufferKind::kQuantised:
      return kernels.rms_norm_quantise;
    case BufferKind::kBFloat16:
      return kernels.rms_norm_round;
    case BufferKind::kFloat:
      break;
  }
  return kernels.rms_norm;
}

}  // namespace

Activations Activations::In(std::byte* memory, BufferKind kind, int64_t rows, int64_t columns) {
  Activations view;
  view.kind = kind;
  switch (kind) {
    case BufferKind::kFloat:
      view.x = reinterpret_cast<float*>(memory);
      view.ldx = columns;
      break;
    case BufferKind::kQuantised:
      view.q = kernels::MakeQuantisedRows(memory, rows, columns);
      break;
    case BufferKind::kBFloat16:
      view.b = kernels::MakeBFloat16Rows(memory, rows);
      break;
  }
  return view;
}

Activations Activations::From(int64_t row, int64_t column) const {
  Activations view = *this;
  if (kind == BufferKind::kFloat) {
    view.x += row * ldx + column;
    return view;
  }
  TESSERA_DCHECK(column % kernels::kBlock == 0);
  const int64_t block = column / kernels::kBlock;
  if (kind == BufferKind::kBFloat16) {
    view.b.values += (block * b.rows + row) * kernels::kBlock;
    return view;
  }
  const int64_t at = block * q.rows + row;
  view.q.codes += at * kernels::kBlock;
  view.q.scales += at;
  view.q.scaled_sums += at;
  view.q.sums += at;
  view.q.half_sums += 2 * at;
  return view;
}

Executor::Executor(const bundle::Program& program, std::vector<BoundWeight> weights, KvMemory* kv,
                   const kernels::RowKernels& kernels, int64_t max_rows, ThreadPool* pool)
    : program_(program),
      weights_(std::move(weights)),
      kv_(kv),
      kernels_(kernels),
      max_rows_(max_rows),
      pool_(pool),
      workers_(static_cast<size_t>(pool->size())),
      shares_(pool->size()) {}

Result<std::unique_ptr<Executor>> Executor::Make(const bundle::Program& program,
                                                 std::vector<BoundWeight> weights, KvMemory* kv,
                                                 const kernels::RowKernels& kernels,
                                                 int64_t max_rows, ThreadPool* pool) {
  std::unique_ptr<Executor> executor(
      new Executor(program, std::move(weights), kv, kernels, max_rows, pool));
  for (const bundle::Rope& rope : program.ropes) {
    TESSERA_ASSIGN_OR_RETURN(RopeCache cache, RopeCache::Make(rope, program.dims.max_seq_len));
    executor->ropes_.push_back(std::move(cache));
  }
  TESSERA_RETURN_IF_ERROR(executor->PlanMemory());
  // Made once: a std::function made for every step might allocate.
  executor->phase_ = [self = executor.get()](int worker) {
    self->RunSteps(&self->workers_[static_cast<size_t>(worker)]);
  };
  return executor;
}

Status Executor::PlanMemory() {
  const bundle::Dims& d = dims();
  for (const bundle::Buffer& buffer : program_.buffers)
    buffer_slots_.push_back(arena_.Add(BufferBytes(buffer.kind, max_rows_, buffer.columns)));
  uint64_t prepared_all = PreparedBytes(max_rows_, d.hidden);
  uint64_t prepared_few = PreparedBytes(kRedundantRows, d.hidden);
  for (const bundle::Buffer& buffer : program_.buffers) {
    prepared_all = std::max(prepared_all, PreparedBytes(max_rows_, buffer.columns));
    prepared_few = std::max(prepared_few, PreparedBytes(kRedundantRows, buffer.columns));
  }
  norm_slot_ = arena_.Add(prepared_all);
  logits_slot_ = arena_.Add(BufferBytes(BufferKind::kFloat, max_rows_, d.vocab_size));
  block_max_slot_ =
      arena_.Add(BufferBytes(BufferKind::kFloat, max_rows_, kernels::LogitBlocks(d.vocab_size)));
  // The tile must hold one KV head's keys and values, one attention tile of a whole group, and one
  // block of 32 gated columns (gate, up and product).
  const int64_t group_columns = d.heads / d.kv_heads * d.head_dim;
  tile_floats_ = std::max({kTileFloats, kTileRows * 2 * d.head_dim,
                           kernels::kAttentionRows * group_columns, kTileRows * 3 * 32});
  struct Slots {
    Arena::Slot tile, norm, attention;
  };
  std::vector<Slots> slots;
  const int64_t scratch = kernels::AttentionScratchBytes(d.head_dim, d.heads / d.kv_heads);
  for (size_t i = 0; i < workers_.size(); ++i) {
    const auto tile_bytes = static_cast<uint64_t>(tile_floats_) * sizeof(float);
    slots.push_back({arena_.Add(tile_bytes), arena_.Add(prepared_few),
                     arena_.Add(static_cast<uint64_t>(scratch))});
  }
  TESSERA_RETURN_IF_ERROR(arena_.Commit());
  for (size_t i = 0; i < workers_.size(); ++i) {
    workers_[i].index = static_cast<int>(i);
    workers_[i].count = pool_->size();
    workers_[i].tile = arena_.As<float>(slots[i].tile);
    workers_[i].norm = arena_.At(slots[i].norm);
    workers_[i].attention = arena_.At(slots[i].attention);
  }
  return {};
}

void Executor::Run(const StepRows& rows) {
  TESSERA_CHECK(rows.rows() >= 1 && rows.rows() <= max_rows_);
  rows_ = &rows;
  for (RopeCache& rope : ropes_) rope.Extend(rows.last_position() + 1);
  pool_->Run(phase_);
  rows_ = nullptr;
}

void Executor::RunSteps(Worker* worker) {
  const size_t steps = program_.steps.size();
  for (size_t i = 0; i < steps; ++i) {
    std::visit([&](const auto& op) { RunOp(*this, op, worker); }, program_.steps[i].op);
    if (i + 1 < steps) pool_->Barrier(worker->index);
  }
}

std::span<const float> Executor::logits(int64_t rows) const {
  return {logits_data(), static_cast<size_t>(rows * dims().vocab_size)};
}

std::span<const float> Executor::block_max(int64_t rows) const {
  return {block_max_data(), static_cast<size_t>(rows * kernels::LogitBlocks(dims().vocab_size))};
}

WorkCounters Executor::counters() const {
  WorkCounters sum;
  for (const Worker& worker : workers_) {
    sum.weight_bytes += worker.counters.weight_bytes;
    sum.kv_bytes += worker.counters.kv_bytes;
    sum.matmul_macs += worker.counters.matmul_macs;
    sum.attention_macs += worker.counters.attention_macs;
  }
  return sum;
}

BufferKind Executor::kind(bundle::BufferIndex index) const {
  return program_.buffers[static_cast<size_t>(index)].kind;
}

int64_t Executor::columns(bundle::BufferIndex index) const {
  return program_.buffers[static_cast<size_t>(index)].columns;
}

float* Executor::floats(bundle::BufferIndex index) const {
  TESSERA_DCHECK(kind(index) == BufferKind::kFloat);
  return arena_.As<float>(buffer_slots_[static_cast<size_t>(index)]);
}

Activations Executor::activations(bundle::BufferIndex index) const {
  return Activations::In(arena_.At(buffer_slots_[static_cast<size_t>(index)]), kind(index),
                         rows_->rows(), columns(index));
}

void Executor::Convert(const float* x, int64_t ldx, int64_t columns, int64_t rows,
                       const Activations& to) const {
  if (to.kind == BufferKind::kBFloat16) {
    kernels_.round({.x = x, .ldx = ldx, .k = columns, .row_end = rows, .out = to.b});
    return;
  }
  TESSERA_DCHECK(to.kind == BufferKind::kQuantised);
  kernels_.quantise({.x = x, .ldx = ldx, .k = columns, .row_end = rows, .out = to.q});
}

Activations Executor::Input(bundle::BufferIndex index, BufferKind kind, Worker* worker) {
  const Activations in = activations(index);
  if (in.kind == kind) return in;
  const int64_t rows = rows_->rows(), width = columns(index);
  const bool shared = rows > kRedundantRows && worker->count > 1;
  std::byte* memory = rows > kRedundantRows ? arena_.At(norm_slot_) : worker->norm;
  const Activations result = Activations::In(memory, kind, rows, width);
  const Worker::Range share = shared ? worker->Share(rows) : Worker::Range{0, rows};
  if (share.begin < share.end)
    Convert(in.From(share.begin).x, width, width, share.end - share.begin,
            result.From(share.begin));
  if (shared) pool_->Barrier(worker->index);
  return result;
}

Activations Executor::NormInput(bundle::BufferIndex in, const bundle::Norm& norm, BufferKind kind,
                                std::span<const int32_t> listed_rows, Worker* worker) {
  const int64_t hidden = columns(in);
  const bool listed = listed_rows.data() != nullptr;
  const int64_t rows = listed ? std::ssize(listed_rows) : rows_->rows();
  const bool shared = rows > kRedundantRows && worker->count > 1;
  std::byte* memory = rows > kRedundantRows ? arena_.At(norm_slot_) : worker->norm;

  kernels::RmsNormArgs args;
  args.weight = weight(norm.weight).vector();
  args.eps = static_cast<float>(norm.eps);
  args.k = hidden;
  args.ldx = hidden;
  args.ld_out = hidden;
  const Activations result = Activations::In(memory, kind, rows, hidden);
  const kernels::RmsNormFn run = NormFor(kernels_, kind);
  const Worker::Range share = shared ? worker->Share(rows) : Worker::Range{0, rows};
  const float* x = floats(in);
  const auto normalise = [&](int64_t from_row, int64_t to_row, int64_t count) {
    const Activations to = result.From(to_row);
    args.x = x + from_row * hidden;
    args.row_begin = 0;
    args.row_end = count;
    args.q = to.q;
    args.b = to.b;
    args.out = to.x;
    run(args);
  };
  if (listed) {
    for (int64_t i = share.begin; i < share.end; ++i)
      normalise(listed_rows[static_cast<size_t>(i)], i, 1);
  } else if (share.begin < share.end) {
    normalise(share.begin, share.begin, share.end - share.begin);
  }
  if (shared) pool_->Barrier(worker->index);
  return result;
}

void Executor::Matmul(const BoundWeight& weight, const Activations& in, int64_t rows,
                      int64_t group_begin, int64_t group_end, float* out, int64_t ld_out,
                      Worker* worker) const {
  if (group_begin >= group_end) return;
  kernels::MatmulArgs args;
  args.weights = weight.data + group_begin * weight.group_bytes;
  args.n = weight.n - group_begin * kernels::kGroupRows;
  args.k = weight.k;
  args.segments = weight.segments;
  args.q = in.q;
  args.b = in.b;
  args.x = in.x;
  args.ldx = in.ldx;
  args.rows = rows;
  args.out = out;
  args.ld_out = ld_out;
  args.group_begin = 0;
  args.group_end = group_end - group_begin;
  (rows == 1 ? weight.one : weight.many)(args);
  const int64_t columns = std::min((group_end - group_begin) * kernels::kGroupRows, args.n);
  worker->counters.weight_bytes +=
      static_cast<uint64_t>((group_end - group_begin) * weight.group_bytes);
  worker->counters.matmul_macs += static_cast<uint64_t>(rows * columns * weight.k);
}

int64_t Executor::TileColumns(int64_t rows, int64_t per_column, int64_t unit) const {
  const int64_t columns = tile_floats_ / (rows * per_column) / unit * unit;
  return std::max(columns, unit);
}

}  // namespace tessera::runtime
