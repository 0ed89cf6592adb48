// SPDX-License-Identifier: Apache-2.0
//
// Shares groups of output columns; whoever computes columns adds them to the residual stream.
#include <algorithm>

#include "kernels/pack.h"
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

}  // namespace

void RunOp(Executor& ex, const ProjectStep& step, Worker* worker) {
  const BoundWeight& weight = ex.weight(step.weight);
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
