// SPDX-License-Identifier: Apache-2.0
//
// Shares groups of output columns; whoever computes columns adds them to the residual stream. Of
// several ranks each has the sums of its own segments only: it writes them apart, and when all
// have, the workers of all ranks share the values that are to be added.
#include <algorithm>
#include <array>

#include "bundle/limits.h"
#include "kernels/pack.h"
#include "runtime/add_segments.h"
#include "runtime/steps/blocks.h"
#include "runtime/steps/steps.h"

namespace tessera::runtime {
namespace {

using bundle::ProjectStep;

void Add(const Executor& ex, const float* a, int64_t lda, const float* b, int64_t ldb, float* out,
         int64_t ld_out, int64_t rows, int64_t columns) {
  kernels::BinaryArgs args;
  args.a = a;
  args.lda = lda;
  args.b = b;
  args.ldb = ldb;
  args.out = out;
  args.ld_out = ld_out;
  args.columns = columns;
  args.row_end = rows;
  ex.kernels().add(args);
}

int64_t Units(const BoundWeight& weight) {
  return (kernels::GroupCount(weight.n) + kUnitGroups - 1) / kUnitGroups;
}

/// This rank's segments of the product, each a matrix of all columns.
void SumSegments(Executor& ex, const ProjectStep& step, const SegmentSet& set, Worker* worker) {
  const BoundWeight& weight = ex.weight(step.weight);
  const Activations in = ex.Input(step.in, weight.input, worker);
  float* out = ex.collective()->Segments(ex.rank().rank, set);
  const int64_t inputs = weight.k / weight.segments, per_segment = Units(weight);
  const int64_t units = weight.segments * per_segment;
  const auto share_of = [&](int owner) { return worker->ShareOf(owner, units); };
  ForEachBlock(ex, worker, worker->rows, units, share_of, [&](const Block& b) {
    for (int64_t unit = b.units.begin; unit < b.units.end;) {
      const int64_t segment = unit / per_segment, first = unit % per_segment;
      const int64_t count = std::min(b.units.end - unit, per_segment - first);
      const int64_t begin = first * kUnitGroups;
      const int64_t end = std::min((first + count) * kUnitGroups, kernels::GroupCount(weight.n));
      ex.MatmulSegment(weight, segment, in.From(b.row, segment * inputs), b.rows, begin, end,
                       out + segment * set.floats + b.row * weight.n + begin * kernels::kGroupRows,
                       weight.n, worker);
      unit += count;
    }
  });
}

/// Adds the segments of all ranks. This process's values, [rows][columns] one after the other, are
/// shared by its workers in pieces.
void AddAll(Executor& ex, const ProjectStep& step, const SegmentSet& set, Worker* worker) {
  constexpr int64_t kPiece = 64;
  const BoundWeight& weight = ex.weight(step.weight);
  std::array<const float*, bundle::kMaxSegments> bases;
  size_t count = 0;
  for (int64_t rank = 0; rank < std::ssize(set.counts); ++rank) {
    const float* first = ex.collective()->Segments(rank, set);
    for (int64_t i = 0; i < set.counts[static_cast<size_t>(rank)]; ++i)
      bases[count++] = first + i * set.floats;
  }
  const bundle::Interval own = ex.collective()->Own(set);
  const Worker::Range share = worker->GroupShare((own.size() + kPiece - 1) / kPiece);
  const int64_t end = std::min(own.begin + share.end * kPiece, own.end);
  float* residual = ex.floats(step.residual, *worker);
  for (int64_t at = own.begin + share.begin * kPiece; at < end;) {
    const int64_t column = at % weight.n;
    std::array<const float*, bundle::kMaxSegments> segments;
    for (size_t i = 0; i < count; ++i) segments[i] = bases[i] + at;
    AddSegmentsArgs args;
    args.segments = std::span(segments).first(count);
    args.bias = step.bias ? ex.weight(*step.bias).vector() + column : nullptr;
    args.flush = weight.input == bundle::BufferKind::kBFloat16;
    args.columns = std::min(end - at, weight.n - column);  // A row's at the most: its bias.
    args.residual = residual + at;
    AddSegments(args);
    at += args.columns;
  }
}

}  // namespace

void RunOp(Executor& ex, const ProjectStep& step, Worker* worker) {
  const BoundWeight& weight = ex.weight(step.weight);
  if (weight.layout == bundle::WeightLayout::kSegments) {
    const SegmentSet set = ex.SegmentsOf(step.weight, worker->rows);
    SumSegments(ex, step, set, worker);
    ex.collective()->Exchange(set, worker->pool_index);
    AddAll(ex, step, set, worker);
    return ex.collective()->Share(ex.floats(step.residual, *worker), set, worker->pool_index);
  }
  const Activations in = ex.Input(step.in, weight.input, worker);
  const int64_t ld = ex.columns(step.residual);
  const int64_t rows = worker->rows;
  const int64_t units = Units(weight);
  const int64_t unit_columns = kUnitGroups * kernels::kGroupRows;
  const int64_t most = ex.TileColumns(TileRows(rows), 1, unit_columns) / unit_columns;
  const auto share_of = [&](int owner) { return worker->ShareOf(owner, units); };
  ForEachBlock(ex, worker, rows, most, share_of, [&](const Block& b) {
    const int64_t begin = b.units.begin * kUnitGroups;
    const int64_t end = std::min(b.units.end * kUnitGroups, kernels::GroupCount(weight.n));
    const int64_t column = begin * kernels::kGroupRows;
    const int64_t columns = std::min(end * kernels::kGroupRows, weight.n) - column;
    ex.Matmul(weight, in.From(b.row), b.rows, begin, end, worker->tile, columns, worker);
    if (step.bias)
      Add(ex, worker->tile, columns, ex.weight(*step.bias).vector() + column, 0, worker->tile,
          columns, b.rows, columns);
    float* residual = ex.floats(step.residual, *worker) + b.row * ld + column;
    Add(ex, residual, ld, worker->tile, columns, residual, ld, b.rows, columns);
  });
}

}  // namespace tessera::runtime
