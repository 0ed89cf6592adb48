// SPDX-License-Identifier: Apache-2.0
//
// Shares columns of the product in whole blocks of 32 (of 8 for float outputs): gate and up of the
// same columns meet in the worker's tile, and the product is converted where it is made.
#include "kernels/pack.h"
#include "runtime/steps/blocks.h"
#include "runtime/steps/steps.h"

namespace tessera::runtime {
namespace {

using bundle::GatedStep;

/// Columns of the product that are shared as one.
int64_t UnitColumns(const Executor& ex, const GatedStep& step) {
  return ex.kind(step.out) != bundle::BufferKind::kFloat ? kernels::kBlock : kernels::kGroupRows;
}

struct Tile {
  int64_t row, rows;        // Of those at work.
  int64_t column, columns;  // Of the product.
};

/// Gate and up of the tile into the tile; returns how they lie there.
kernels::GateLayout GateAndUp(const Executor& ex, const GatedStep& step, const Activations& in,
                              const Tile& b, Worker* worker) {
  const Activations rows = in.From(b.row);
  const int64_t begin = b.column / kernels::kGroupRows;
  const int64_t end = (b.column + b.columns) / kernels::kGroupRows;
  const int64_t ld = 2 * b.columns;
  if (!step.up) {
    ex.Matmul(ex.weight(step.gate), rows, b.rows, 2 * begin, 2 * end, worker->tile, ld, worker);
    return kernels::GateLayout::kInterleaved;
  }
  ex.Matmul(ex.weight(step.gate), rows, b.rows, begin, end, worker->tile, ld, worker);
  ex.Matmul(ex.weight(*step.up), rows, b.rows, begin, end, worker->tile + b.columns, ld, worker);
  return kernels::GateLayout::kHalves;
}

void RunTile(const Executor& ex, const GatedStep& step, const Activations& in, const Tile& b,
             Worker* worker) {
  const bool convert = ex.kind(step.out) != bundle::BufferKind::kFloat;
  const int64_t ld_out = ex.columns(step.out);
  float* product = worker->tile + b.rows * 2 * b.columns;
  kernels::GatedArgs args;
  args.layout = GateAndUp(ex, step, in, b, worker);
  args.x = worker->tile;
  args.ldx = 2 * b.columns;
  args.out = convert ? product : ex.floats(step.out, *worker) + b.row * ld_out + b.column;
  args.ld_out = convert ? b.columns : ld_out;
  args.columns = b.columns;
  args.row_end = b.rows;
  if (step.activation == bundle::Activation::kSilu) {
    ex.kernels().silu_gate(args);
  } else {
    ex.kernels().gelu_gate(args);
  }
  if (convert)
    ex.Convert(product, b.columns, b.columns, b.rows,
               ex.activations(step.out, *worker).From(b.row, b.column));
}

}  // namespace

void RunOp(Executor& ex, const GatedStep& step, Worker* worker) {
  const Activations in =
      ex.NormInput(step.in, step.norm, {step.gate, step.up.value_or(step.gate)}, {}, worker);
  const int64_t unit = UnitColumns(ex, step);
  const int64_t units = ex.columns(step.out) / unit;
  const int64_t rows = worker->rows;
  const int64_t most = ex.TileColumns(TileRows(rows), 3, unit) / unit;
  const auto share_of = [&](int owner) { return worker->ShareOf(owner, units); };
  ForEachBlock(ex, worker, rows, most, share_of, [&](const Block& b) {
    RunTile(ex, step, in,
            {b.row, b.rows, b.units.begin * unit, (b.units.end - b.units.begin) * unit}, worker);
  });
}

}  // namespace tessera::runtime
