// SPDX-License-Identifier: Apache-2.0
//
// Executor: runs the fused steps of a program over the rows of a StepRows. Either all workers share
// every step by columns, with one barrier after each (a step that needs one inside says so), or
// each carries strips of rows through whole segments (row_view.h, segments.h), with one barrier
// after each of those. From the last attention on only rows that want logits are computed. Which
// worker computes a value, and beside which others, is left to chance (work_shares.h): every value
// is computed by one kernel call in an order that does not depend on the split. That is the
// determinism rule (docs: ARCHITECTURE, kernels/matmul.h).
//
// An executor may be one rank of a group (bundle/shard.h): it has its own program and workers, and
// adds with the others what each computed apart (collective.h). Ranks of one process share the
// residual stream, logits and hidden states: `lead`, rank 0's executor, has them.
//
// One owner thread calls Run. Memory is planned and reserved in Make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "bundle/program.h"
#include "bundle/shard.h"
#include "kernels/catalog.h"
#include "runtime/arena.h"
#include "runtime/collective.h"
#include "runtime/kv_memory.h"
#include "runtime/rope_cache.h"
#include "runtime/segments.h"
#include "runtime/step_rows.h"
#include "runtime/weights.h"
#include "runtime/work_shares.h"

namespace tessera::runtime {

/// Rows of activations in one of the forms that matmuls read, or in several at once; a view.
struct Activations {
  bundle::BufferKind kind = bundle::BufferKind::kFloat;
  kernels::QuantisedRows q;
  kernels::BFloat16Rows b;
  float* x = nullptr;
  int64_t ldx = 0;

  /// `memory` as an array of `rows` rows of `columns`.
  static Activations In(std::byte* memory, bundle::BufferKind kind, int64_t rows, int64_t columns);
  /// The other's form beside those that are here; `kind` stays.
  void Add(const Activations& other);
  /// The same from row `row` and column `column` on; in forms of blocks a multiple of 32.
  Activations From(int64_t row, int64_t column = 0) const;
};

/// What kernels were given to do; SessionStats says what each counts.
struct WorkCounters {
  uint64_t weight_bytes = 0;
  uint64_t kv_bytes = 0;
  uint64_t matmul_macs = 0;
  uint64_t attention_macs = 0;
};

/// One thread's part of a step: its share of rows [row, row + rows) of the view. Cache-line
/// aligned: counters are written in the inner phases.
struct alignas(64) Worker {
  int index = 0;  // Of those that share the rows; 0 of 1 when the rows are a strip.
  int count = 1;
  int pool_index = 0;  // Of the pool.
  // Of those that share the residual stream, logits and hidden states.
  int group_index = 0;
  int group_count = 1;
  bool alone = false;  // The rows are a strip.
  const RowView* view = nullptr;
  bool gathered = false;  // The view is StepRows::wanted().
  int64_t row = 0;
  int64_t rows = 0;
  float* tile = nullptr;           // Output tile, see Executor::tile_floats().
  std::byte* norm = nullptr;       // Normalised rows, up to kRedundantRows or of a strip.
  std::vector<std::byte*> blocks;  // By buffer: rows of a strip, of buffers that are blocks.
  std::byte* attention = nullptr;  // Scratch of the attention kernel.
  uint64_t phase = 0;              // Of the shares; the same in all workers between two barriers.
  WorkCounters counters;           // Since the executor was made.

  struct Range {
    int64_t begin = 0;
    int64_t end = 0;
  };
  /// This worker's share of `units`: contiguous, in order of the index, equal up to one.
  Range Share(int64_t units) const { return ShareOf(index, units); }
  Range ShareOf(int worker, int64_t units) const {
    return {units * worker / count, units * (worker + 1) / count};
  }
  /// The same of what the workers of all ranks in this process share.
  Range GroupShare(int64_t units) const {
    if (alone) return Share(units);
    return {units * group_index / group_count, units * (group_index + 1) / group_count};
  }
};

class Executor;

/// Where an executor stands in a group; alone by default.
struct ExecutorPlace {
  Collective* collective = nullptr;
  const Executor* lead = nullptr;  // Null: it is the lead, or the only one of its process.
  int first_worker = 0;            // Of the pool.
  int workers = 0;                 // 0: all.
  int64_t first_kv_head = 0;       // Where its heads are in the KV memory.
  /// Called by the pool's first worker between two segments, while others are in the second.
  std::function<void()> after_segment = {};
};

class Executor {
 public:
  /// `program` and the archive behind `weights` must outlive the executor.
  static Result<std::unique_ptr<Executor>> Make(const bundle::RankProgram& program,
                                                std::vector<BoundWeight> weights, KvMemory* kv,
                                                const kernels::RowKernels& kernels,
                                                int64_t max_rows, ThreadPool* pool,
                                                const ExecutorPlace& place = {});

  /// Logits [logit_rows, vocab_size] are in logits() afterwards, their maxima in block_max().
  void Run(const StepRows& rows);
  /// The same for one of several ranks, which share a pool: Begin for each, then every worker of
  /// the pool runs RunWorker of its rank, then End for each.
  void Begin(const StepRows& rows);
  void RunWorker(int index) { RunSegments(index); }  // Of the rank's workers.
  void End() { rows_ = nullptr; }

  std::span<const float> logits(int64_t rows) const;
  std::span<const float> block_max(int64_t rows) const;  // [rows, LogitBlocks(vocab_size)]
  std::span<const float> hidden(int64_t rows) const;     // [rows, dims().hidden], if wanted.
  WorkCounters counters() const;                         // Of all workers.
  uint64_t scratch_bytes() const { return arena_.bytes(); }
  std::span<const std::byte> scratch() const { return arena_.memory(); }

  // For the steps (steps/*.cc), which run inside Run() on every worker.
  const bundle::Dims& dims() const { return program_.dims; }
  const BoundWeight& weight(bundle::WeightIndex index) const {
    return weights_[static_cast<size_t>(index)];
  }
  const kernels::RowKernels& kernels() const { return kernels_; }
  const StepRows& rows() const { return *rows_; }
  const RopeCache& rope(int64_t index) const { return ropes_[static_cast<size_t>(index)]; }
  KvMemory& kv() const { return *kv_; }
  /// The plane of the KV memory that holds a KV head of this rank.
  int64_t KvPlane(int64_t layer, int64_t kv_head) const {
    return kv_->Plane(layer, place_.first_kv_head + kv_head);
  }
  float* logits_data() const { return shared().arena_.As<float>(shared().logits_slot_); }
  float* block_max_data() const { return shared().arena_.As<float>(shared().block_max_slot_); }
  float* hidden_data() const { return shared().arena_.As<float>(shared().hidden_slot_); }
  WorkShares& shares() { return shares_; }
  const bundle::RankProgram& rank() const { return rank_; }
  Collective* collective() const { return place_.collective; }
  /// The segments of a projection's weight, which is cut, with `rows` rows.
  SegmentSet SegmentsOf(bundle::WeightIndex weight, int64_t rows) const;
  void Barrier(const Worker& worker) { pool_->Barrier(worker.pool_index); }

  bundle::BufferKind kind(bundle::BufferIndex index) const;
  int64_t columns(bundle::BufferIndex index) const;
  /// The buffer's rows at work, of kind f32.
  float* floats(bundle::BufferIndex index, const Worker& worker) const;
  /// The same of any kind.
  Activations activations(bundle::BufferIndex index, const Worker& worker) const;
  /// All rows of the step, as the segments that had them all wrote them.
  const float* step_floats(bundle::BufferIndex index) const;
  /// Rows [0, rows) and `columns` columns of x to the front of `to`, which is not of kind f32.
  void Convert(const float* x, int64_t ldx, int64_t columns, int64_t rows,
               const Activations& to) const;

  /// A buffer as the input of a matmul that reads `kind`. A float buffer that must be converted is,
  /// by all workers together; every worker calls it, and it passes a barrier when there are many
  /// rows.
  Activations Input(bundle::BufferIndex index, bundle::BufferKind kind, Worker* worker);

  /// Normalises the float buffer for matmuls with these weights, in each of the forms that they
  /// read: the rows at work, or of those the rows listed. Every worker calls it; passes a barrier
  /// when many rows are shared.
  Activations NormInput(bundle::BufferIndex in, const bundle::Norm& norm,
                        std::initializer_list<bundle::WeightIndex> readers,
                        std::span<const int32_t> listed_rows, Worker* worker);
  /// One form of it: this worker's share of `rows` rows to `result`, no barrier. Without a list all
  /// rows at work.
  void NormRows(bundle::BufferIndex in, const bundle::Norm& norm,
                std::span<const int32_t> listed_rows, const Activations& result, int64_t rows,
                const Worker& worker) const;

  /// The same as floats to `out` [rows, columns]; this worker's share of the rows, no barrier.
  void NormFloats(bundle::BufferIndex in, const bundle::Norm& norm,
                  std::span<const int32_t> listed_rows, float* out, const Worker& worker) const;

  /// out[r][..] = groups [begin, end) of the weight times rows [0, rows) of `in`.
  void Matmul(const BoundWeight& weight, const Activations& in, int64_t rows, int64_t group_begin,
              int64_t group_end, float* out, int64_t ld_out, Worker* worker) const;
  /// The same with the sum over one segment of the inputs, of a weight whose segments lie apart.
  void MatmulSegment(const BoundWeight& weight, int64_t segment, const Activations& in,
                     int64_t rows, int64_t group_begin, int64_t group_end, float* out,
                     int64_t ld_out, Worker* worker) const;

  /// Columns (a multiple of `unit`) that a tile of `rows` rows and `per_column` floats a column
  /// holds; at least one unit.
  int64_t TileColumns(int64_t rows, int64_t per_column, int64_t unit) const;

 private:
  Executor(const bundle::RankProgram& program, std::vector<BoundWeight> weights, KvMemory* kv,
           const kernels::RowKernels& kernels, int64_t max_rows, ThreadPool* pool,
           const ExecutorPlace& place);
  Status PlanMemory();
  void PlanShared();
  Status PlanWorkers();
  void RunSegments(int index);
  void RunShared(const Segment& segment, Worker* worker);
  void RunStrips(const Segment& segment, Worker* worker);
  void RunStep(size_t step, Worker* worker);
  /// Where to put rows that are prepared for a matmul.
  std::byte* PreparedRows(int64_t rows, const Worker& worker) const;
  /// The worker's share of the rows at work, of every gathered buffer.
  void Gather(const Worker& worker) const;
  const Executor& shared() const { return place_.lead != nullptr ? *place_.lead : *this; }
  /// The memory of a buffer, or of its gathered rows.
  std::byte* BufferMemory(bundle::BufferIndex index, bool gathered) const;

  const bundle::RankProgram& rank_;
  const ExecutorPlace place_;
  const bundle::Program& program_;
  const bundle::BufferIndex stream_;  // The residual stream.
  const std::vector<BoundWeight> weights_;
  KvMemory* const kv_;
  const kernels::RowKernels kernels_;
  const int64_t max_rows_;
  ThreadPool* const pool_;
  std::vector<RopeCache> ropes_;
  Arena arena_;
  const std::vector<Segment> segments_;
  const std::vector<bundle::BufferIndex> gathered_;
  std::vector<Arena::Slot> buffer_slots_;
  std::vector<std::optional<Arena::Slot>> gathered_slots_;  // By buffer.
  Arena::Slot norm_slot_ = 0;                               // Prepared rows of a step with many.
  Arena::Slot logits_slot_ = 0;
  Arena::Slot block_max_slot_ = 0;
  Arena::Slot hidden_slot_ = 0;
  int64_t tile_floats_ = 0;
  std::vector<Worker> workers_;
  WorkShares shares_;
  std::function<void(int)> phase_;
  const StepRows* rows_ = nullptr;
};

}  // namespace tessera::runtime
