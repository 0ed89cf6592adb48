// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "bundle/buffer_bytes.h"
#include "bundle/program_verify.h"
#include "kernels/pack.h"
#include "runtime/limits.h"
#include "runtime/steps/steps.h"

namespace tessera::runtime {
namespace {

using bundle::BufferBytes;
using bundle::BufferKind;

constexpr BufferKind kKinds[] = {BufferKind::kFloat, BufferKind::kBFloat16, BufferKind::kQuantised};

/// Of one form of prepared rows; the next one beside it is aligned as kernels want it.
uint64_t FormBytes(BufferKind kind, int64_t rows, int64_t columns) {
  // Columns that are no whole blocks have no int8 form, and no weight wants it.
  if (kind == BufferKind::kQuantised && columns % kernels::kBlock != 0) return 0;
  constexpr uint64_t kAlignment = 64;
  return (BufferBytes(kind, rows, columns) + kAlignment - 1) / kAlignment * kAlignment;
}

/// Rows that a step prepares for its matmuls, in any form, or in all of them beside each other.
uint64_t PreparedBytes(int64_t rows, int64_t columns, bool all_forms = false) {
  uint64_t largest = 0, sum = 0;
  for (const BufferKind kind : kKinds) {
    const uint64_t bytes = FormBytes(kind, rows, columns);
    largest = std::max(largest, bytes);
    sum += bytes;
  }
  return all_forms ? sum : largest;
}

/// Whether matmuls of one step read different forms of the same rows.
bool MixesForms(const bundle::Program& program) {
  const auto kind = [&](bundle::WeightIndex index) {
    return bundle::InputKind(program.weights[static_cast<size_t>(index)].dtype);
  };
  return std::ranges::any_of(program.steps, [&](const bundle::Step& step) {
    if (const auto* qkv = std::get_if<bundle::QkvStep>(&step.op))
      return kind(qkv->q.weight) != kind(qkv->k.weight) ||
             kind(qkv->q.weight) != kind(qkv->v.weight);
    const auto* gated = std::get_if<bundle::GatedStep>(&step.op);
    return gated != nullptr && gated->up && kind(gated->gate) != kind(*gated->up);
  });
}

bool IsAttention(const bundle::Step& step) {
  return std::holds_alternative<bundle::AttentionStep>(step.op);
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

void Activations::Add(const Activations& other) {
  if (other.x != nullptr) {
    x = other.x;
    ldx = other.ldx;
  }
  if (other.b.values != nullptr) b = other.b;
  if (other.q.codes != nullptr) q = other.q;
}

Activations Activations::From(int64_t row, int64_t column) const {
  Activations view = *this;
  if (x != nullptr) view.x += row * ldx + column;
  TESSERA_DCHECK(column % kernels::kBlock == 0 || (b.values == nullptr && q.codes == nullptr));
  const int64_t block = column / kernels::kBlock;
  if (b.values != nullptr) view.b.values += (block * b.rows + row) * kernels::kBlock;
  if (q.codes == nullptr) return view;
  const int64_t at = block * q.rows + row;
  view.q.codes += at * kernels::kBlock;
  view.q.scales += at;
  view.q.scaled_sums += at;
  view.q.sums += at;
  view.q.half_sums += 2 * at;
  return view;
}

Executor::Executor(const bundle::RankProgram& program, std::vector<BoundWeight> weights,
                   KvMemory* kv, const kernels::RowKernels& kernels, int64_t max_rows,
                   ThreadPool* pool, const ExecutorPlace& place)
    : rank_(program),
      place_(place),
      program_(program.program),
      stream_(std::get<bundle::EmbedStep>(program_.steps.front().op).out),
      weights_(std::move(weights)),
      kv_(kv),
      kernels_(kernels),
      max_rows_(max_rows),
      pool_(pool),
      segments_(runtime::SegmentsOf(program_)),
      gathered_(GatheredBuffers(program_, segments_)),
      workers_(static_cast<size_t>(place.workers > 0 ? place.workers : pool->size())),
      shares_(static_cast<int>(workers_.size())) {}

Result<std::unique_ptr<Executor>> Executor::Make(const bundle::RankProgram& program,
                                                 std::vector<BoundWeight> weights, KvMemory* kv,
                                                 const kernels::RowKernels& kernels,
                                                 int64_t max_rows, ThreadPool* pool,
                                                 const ExecutorPlace& place) {
  TESSERA_CHECK(program.ranks == 1 || place.collective != nullptr);
  std::unique_ptr<Executor> executor(
      new Executor(program, std::move(weights), kv, kernels, max_rows, pool, place));
  for (const bundle::Rope& rope : program.program.ropes) {
    TESSERA_ASSIGN_OR_RETURN(RopeCache cache,
                             RopeCache::Make(rope, program.program.dims.max_seq_len));
    executor->ropes_.push_back(std::move(cache));
  }
  TESSERA_RETURN_IF_ERROR(executor->PlanMemory());
  // Made once: a std::function made for every step might allocate.
  executor->phase_ = [self = executor.get()](int worker) { self->RunSegments(worker); };
  return executor;
}

/// Buffers, and what ranks of one process share, for which only the lead has room.
void Executor::PlanShared() {
  const bundle::Dims& d = dims();
  const auto add = [&](bool is_shared, uint64_t bytes) {
    if (!is_shared) return arena_.Add(bytes);
    return arena_.Add(place_.lead != nullptr ? 0 : bytes);
  };
  const auto floats = [&](int64_t columns) {
    return BufferBytes(BufferKind::kFloat, max_rows_, columns);
  };
  gathered_slots_.resize(program_.buffers.size());
  for (const bundle::BufferIndex index : gathered_)
    gathered_slots_[static_cast<size_t>(index)] = add(index == stream_, floats(columns(index)));
  for (bundle::BufferIndex index = 0; index < std::ssize(program_.buffers); ++index) {
    const bundle::Buffer& buffer = program_.buffers[static_cast<size_t>(index)];
    buffer_slots_.push_back(
        add(index == stream_, BufferBytes(buffer.kind, max_rows_, buffer.columns)));
  }
  logits_slot_ = add(true, floats(d.vocab_size));
  hidden_slot_ = add(true, floats(d.hidden));
  block_max_slot_ = add(true, floats(kernels::LogitBlocks(d.vocab_size)));
}

std::byte* Executor::BufferMemory(bundle::BufferIndex index, bool gathered) const {
  const auto at = static_cast<size_t>(index);
  const Executor& owner = index == stream_ ? shared() : *this;
  gathered = gathered && gathered_slots_[at].has_value();
  return owner.arena_.At(gathered ? *owner.gathered_slots_[at] : owner.buffer_slots_[at]);
}

Status Executor::PlanMemory() {
  const bundle::Dims& d = dims();
  PlanShared();
  uint64_t prepared = PreparedBytes(max_rows_, d.hidden, MixesForms(program_));
  for (const bundle::Buffer& buffer : program_.buffers)
    prepared = std::max(prepared, PreparedBytes(max_rows_, buffer.columns));
  norm_slot_ = arena_.Add(prepared);
  // The tile must hold one KV head's keys and values, one attention tile of a whole group, and one
  // block of 32 gated columns (gate, up and product).
  const int64_t group_columns = d.heads / d.kv_heads * d.head_dim;
  tile_floats_ = std::max({kTileFloats, kTileRows * 2 * d.head_dim,
                           kernels::kAttentionRows * group_columns, kTileRows * 3 * 32});
  return PlanWorkers();
}

/// Each worker's own memory, and all memory with it.
Status Executor::PlanWorkers() {
  const bundle::Dims& d = dims();
  constexpr int64_t kRows = std::max(kRedundantRows, kStripRows);
  uint64_t prepared = PreparedBytes(kRows, d.hidden, MixesForms(program_));
  for (const bundle::Buffer& buffer : program_.buffers)
    prepared = std::max(prepared, PreparedBytes(kRows, buffer.columns));
  struct Slots {
    Arena::Slot tile, norm, attention;
    std::vector<Arena::Slot> blocks;
  };
  std::vector<Slots> slots(workers_.size());
  const int64_t scratch = kernels::AttentionScratchBytes(d.head_dim, d.heads / d.kv_heads);
  for (Slots& slot : slots) {
    slot.tile = arena_.Add(static_cast<uint64_t>(tile_floats_) * sizeof(float));
    slot.norm = arena_.Add(prepared);
    slot.attention = arena_.Add(static_cast<uint64_t>(scratch));
    for (const bundle::Buffer& buffer : program_.buffers) {
      const bool blocks = buffer.kind != BufferKind::kFloat;
      slot.blocks.push_back(
          arena_.Add(blocks ? BufferBytes(buffer.kind, kStripRows, buffer.columns) : 0));
    }
  }
  TESSERA_RETURN_IF_ERROR(arena_.Commit());
  for (size_t i = 0; i < workers_.size(); ++i) {
    workers_[i].pool_index = place_.first_worker + static_cast<int>(i);
    workers_[i].group_index = workers_[i].pool_index;
    workers_[i].group_count = pool_->size();
    workers_[i].tile = arena_.As<float>(slots[i].tile);
    workers_[i].norm = arena_.At(slots[i].norm);
    workers_[i].attention = arena_.At(slots[i].attention);
    for (const Arena::Slot slot : slots[i].blocks) workers_[i].blocks.push_back(arena_.At(slot));
  }
  return {};
}

void Executor::Begin(const StepRows& rows) {
  TESSERA_CHECK(rows.rows() >= 1 && rows.rows() <= max_rows_);
  rows_ = &rows;
  for (RopeCache& rope : ropes_) rope.Extend(rows.last_position() + 1);
}

void Executor::Run(const StepRows& rows) {
  Begin(rows);
  pool_->Run(phase_);
  End();
}

void Executor::RunSegments(int index) {
  Worker* worker = &workers_[static_cast<size_t>(index)];
  bool first = true;
  for (const Segment& segment : segments_) {
    const bool fewer = rows_->wanted().rows() < rows_->all().rows();
    worker->gathered = segment.wanted_only && fewer;
    worker->view = worker->gathered ? &rows_->wanted() : &rows_->all();
    if (worker->view->rows() == 0) continue;  // Nobody wants logits.
    if (!first) {
      Barrier(*worker);
      if (worker->pool_index == 0 && place_.after_segment) place_.after_segment();
    }
    first = false;
    worker->index = index;
    worker->count = static_cast<int>(workers_.size());
    worker->row = 0;
    worker->rows = worker->view->rows();
    if (segment.strips && worker->view->has_strips()) {
      RunStrips(segment, worker);
    } else {
      RunShared(segment, worker);
    }
  }
}

void Executor::RunShared(const Segment& segment, Worker* worker) {
  // The attention that begins a segment does not touch what is gathered.
  if (worker->gathered && IsAttention(program_.steps[segment.begin])) Gather(*worker);
  for (size_t i = segment.begin; i < segment.end; ++i) {
    if (i > segment.begin) Barrier(*worker);
    RunStep(i, worker);
  }
}

void Executor::RunStrips(const Segment& segment, Worker* worker) {
  const int index = worker->index;
  const uint64_t phase = ++worker->phase;
  const auto strips_of = [&](int owner) { return std::ssize(worker->view->StripsOf(owner)); };
  worker->alone = true;
  worker->index = 0;
  worker->count = 1;
  for (;;) {
    const WorkShares::Piece piece = shares_.Take(index, phase, 1, strips_of);
    if (piece.empty()) break;
    const Strip& strip = worker->view->StripsOf(piece.owner)[static_cast<size_t>(piece.begin)];
    worker->row = strip.row;
    worker->rows = strip.rows;
    if (worker->gathered) Gather(*worker);
    for (size_t i = segment.begin; i < segment.end; ++i) RunStep(i, worker);
  }
  worker->alone = false;
}

void Executor::RunStep(size_t step, Worker* worker) {
  std::visit([&](const auto& op) { RunOp(*this, op, worker); }, program_.steps[step].op);
}

void Executor::Gather(const Worker& worker) const {
  for (const bundle::BufferIndex index : gathered_) {
    const Worker::Range share =
        index == stream_ ? worker.GroupShare(worker.rows) : worker.Share(worker.rows);
    const int64_t width = columns(index);
    float* out = floats(index, worker);
    for (int64_t row = share.begin; row < share.end; ++row) {
      const int32_t from = rows_->logit_rows()[static_cast<size_t>(worker.row + row)];
      std::copy_n(step_floats(index) + from * width, width, out + row * width);
    }
  }
}

std::span<const float> Executor::logits(int64_t rows) const {
  return {logits_data(), static_cast<size_t>(rows * dims().vocab_size)};
}

std::span<const float> Executor::block_max(int64_t rows) const {
  return {block_max_data(), static_cast<size_t>(rows * kernels::LogitBlocks(dims().vocab_size))};
}

std::span<const float> Executor::hidden(int64_t rows) const {
  return {hidden_data(), static_cast<size_t>(rows * dims().hidden)};
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

float* Executor::floats(bundle::BufferIndex index, const Worker& worker) const {
  TESSERA_DCHECK(kind(index) == BufferKind::kFloat);
  auto* buffer = reinterpret_cast<float*>(BufferMemory(index, worker.gathered));
  return buffer + worker.row * columns(index);
}

const float* Executor::step_floats(bundle::BufferIndex index) const {
  TESSERA_DCHECK(kind(index) == BufferKind::kFloat);
  return reinterpret_cast<const float*>(BufferMemory(index, false));
}

Activations Executor::activations(bundle::BufferIndex index, const Worker& worker) const {
  const auto at = static_cast<size_t>(index);
  std::byte* memory = kind(index) == BufferKind::kFloat
                          ? reinterpret_cast<std::byte*>(floats(index, worker))
                      : worker.alone ? worker.blocks[at]
                                     : arena_.At(buffer_slots_[at]);
  return Activations::In(memory, kind(index), worker.rows, columns(index));
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

std::byte* Executor::PreparedRows(int64_t rows, const Worker& worker) const {
  return rows > kRedundantRows && !worker.alone ? arena_.At(norm_slot_) : worker.norm;
}

Activations Executor::Input(bundle::BufferIndex index, BufferKind kind, Worker* worker) {
  const Activations in = activations(index, *worker);
  if (in.kind == kind) return in;
  const int64_t rows = worker->rows, width = columns(index);
  const bool shared = rows > kRedundantRows && worker->count > 1;
  const Activations result = Activations::In(PreparedRows(rows, *worker), kind, rows, width);
  const Worker::Range share = shared ? worker->Share(rows) : Worker::Range{0, rows};
  if (share.begin < share.end)
    Convert(in.From(share.begin).x, width, width, share.end - share.begin,
            result.From(share.begin));
  if (shared) Barrier(*worker);
  return result;
}

Activations Executor::NormInput(bundle::BufferIndex in, const bundle::Norm& norm,
                                std::initializer_list<bundle::WeightIndex> readers,
                                std::span<const int32_t> listed_rows, Worker* worker) {
  const bool listed = listed_rows.data() != nullptr && std::ssize(listed_rows) < worker->rows;
  const int64_t rows = listed ? std::ssize(listed_rows) : worker->rows;
  std::byte* memory = PreparedRows(rows, *worker);
  Activations all;
  for (const BufferKind kind : kKinds) {
    if (std::ranges::none_of(readers, [&](auto index) { return weight(index).input == kind; }))
      continue;
    const Activations form = Activations::In(memory, kind, rows, columns(in));
    NormRows(in, norm, listed ? listed_rows : std::span<const int32_t>(), form, rows, *worker);
    all.kind = kind;
    all.Add(form);
    memory += FormBytes(kind, rows, columns(in));
  }
  if (rows > kRedundantRows && worker->count > 1) Barrier(*worker);
  return all;
}

void Executor::NormRows(bundle::BufferIndex in, const bundle::Norm& norm,
                        std::span<const int32_t> listed_rows, const Activations& result,
                        int64_t rows, const Worker& worker) const {
  const int64_t hidden = columns(in);
  const bool shared = rows > kRedundantRows && worker.count > 1;
  kernels::RmsNormArgs args;
  args.weight = weight(norm.weight).vector();
  args.eps = static_cast<float>(norm.eps);
  args.k = hidden;
  args.ldx = hidden;
  args.ld_out = hidden;
  const kernels::RmsNormFn run = NormFor(kernels_, result.kind);
  const Worker::Range share = shared ? worker.Share(rows) : Worker::Range{0, rows};
  const float* x = floats(in, worker);
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
  if (!listed_rows.empty()) {
    for (int64_t i = share.begin; i < share.end; ++i)
      normalise(listed_rows[static_cast<size_t>(i)], i, 1);
  } else if (share.begin < share.end) {
    normalise(share.begin, share.begin, share.end - share.begin);
  }
}

void Executor::NormFloats(bundle::BufferIndex in, const bundle::Norm& norm,
                          std::span<const int32_t> listed_rows, float* out,
                          const Worker& worker) const {
  const int64_t hidden = columns(in);
  const int64_t rows = std::ssize(listed_rows);
  const bool listed = rows < worker.rows;
  kernels::RmsNormArgs args;
  args.weight = weight(norm.weight).vector();
  args.eps = static_cast<float>(norm.eps);
  args.k = hidden;
  args.ldx = hidden;
  args.ld_out = hidden;
  args.row_begin = 0;
  args.row_end = 1;
  const kernels::RmsNormFn run = NormFor(kernels_, BufferKind::kFloat);
  const float* x = floats(in, worker);
  const Worker::Range share = worker.GroupShare(rows);
  for (int64_t i = share.begin; i < share.end; ++i) {
    args.x = x + (listed ? listed_rows[static_cast<size_t>(i)] : i) * hidden;
    args.out = out + i * hidden;
    run(args);
  }
}

SegmentSet Executor::SegmentsOf(bundle::WeightIndex index, int64_t rows) const {
  const bundle::WeightSlice& slice = rank_.slices[static_cast<size_t>(index)];
  return {slice.segments, rows * weight(index).n};
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

void Executor::MatmulSegment(const BoundWeight& weight, int64_t segment, const Activations& in,
                             int64_t rows, int64_t group_begin, int64_t group_end, float* out,
                             int64_t ld_out, Worker* worker) const {
  BoundWeight one = weight;
  one.data += segment * weight.segment_bytes;
  one.k = weight.k / weight.segments;
  one.segments = 1;
  Matmul(one, in, rows, group_begin, group_end, out, ld_out, worker);
}

int64_t Executor::TileColumns(int64_t rows, int64_t per_column, int64_t unit) const {
  const int64_t columns = tile_floats_ / (rows * per_column) / unit * unit;
  return std::max(columns, unit);
}

}  // namespace tessera::runtime
