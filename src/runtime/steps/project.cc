// SPDX-License-Identifier: Apache-2.0
//
// Shares groups of eight output columns; each worker adds its own columns to the residual stream.
#include <algorithm>

#include "kernels/pack.h"
#include "runtime/limits.h"
#include "runtime/steps/steps.h"

namespace tessera::runtime {
namespace {

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

}  // namespace

void RunOp(Executor& ex, const bundle::ProjectStep& step, Worker* worker) {
  const BoundWeight& weight = ex.weight(step.weight);
  const Activations in = ex.Input(step.in, weight.quantised_rows, worker);
  const int64_t ld = ex.columns(step.residual);
  const Worker::Range share = worker->Share(kernels::GroupCount(weight.n));
  const int64_t rows = ex.rows().rows();
  for (int64_t row = 0; row < rows; row += kTileRows) {
    const int64_t tile_rows = std::min(kTileRows, rows - row);
    const Activations tile_in = in.FromRow(row);
    const int64_t groups = ex.TileColumns(tile_rows, 1, kernels::kGroupRows) / kernels::kGroupRows;
    for (int64_t begin = share.begin; begin < share.end; begin += groups) {
      const int64_t end = std::min(begin + groups, share.end);
      const int64_t column = begin * kernels::kGroupRows;
      const int64_t columns = std::min(end * kernels::kGroupRows, weight.n) - column;
      ex.Matmul(weight, tile_in, tile_rows, begin, end, worker->tile, columns, worker);
      if (step.bias)
        Add(ex, worker->tile, columns, ex.weight(*step.bias).vector() + column, 0, worker->tile,
            columns, tile_rows, columns);
      float* residual = ex.floats(step.residual) + row * ld + column;
      Add(ex, residual, ld, worker->tile, columns, residual, ld, tile_rows, columns);
    }
  }
}

}  // namespace tessera::runtime
