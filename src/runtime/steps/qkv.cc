// SPDX-License-Identifier: Apache-2.0
//
// Shares heads: a worker computes whole query heads and whole KV heads, so bias, head norm, rope
// and the KV write follow on its own columns without a barrier.
#include <algorithm>

#include "kernels/pack.h"
#include "runtime/steps/blocks.h"
#include "runtime/steps/steps.h"

namespace tessera::runtime {
namespace {

using bundle::HeadRows;
using bundle::QkvStep;

/// What the parts of one call share.
struct Qkv {
  Executor& ex;
  const QkvStep& step;
  Worker* worker;
  Activations in;
  int64_t head_dim;
  // The tile of rows at work.
  int64_t row = 0;
  int64_t rows = 0;
};

/// Heads [begin, end) of a projection to columns from `out` on, head after head by `out_stride`.
void Project(const Qkv& c, const HeadRows& from, int64_t begin, int64_t end, float* out,
             int64_t out_stride, int64_t ld_out) {
  const BoundWeight& weight = c.ex.weight(from.weight);
  const Activations in = c.in.From(c.row);
  const auto group = [&](int64_t row) { return row / kernels::kGroupRows; };
  if (from.stride == c.head_dim && out_stride == c.head_dim) {  // One run of rows and columns.
    const int64_t row = from.row + begin * from.stride;
    c.ex.Matmul(weight, in, c.rows, group(row), group(row + (end - begin) * c.head_dim), out,
                ld_out, c.worker);
    return;
  }
  for (int64_t head = begin; head < end; ++head) {
    const int64_t row = from.row + head * from.stride;
    c.ex.Matmul(weight, in, c.rows, group(row), group(row + c.head_dim),
                out + (head - begin) * out_stride, ld_out, c.worker);
  }
}

void AddBias(const Qkv& c, int64_t bias_column, float* x, int64_t ldx, int64_t columns) {
  if (!c.step.bias) return;
  kernels::BinaryArgs args;
  args.a = x;
  args.lda = ldx;
  args.b = c.ex.weight(*c.step.bias).vector() + bias_column;
  args.ldb = 0;
  args.out = x;
  args.ld_out = ldx;
  args.columns = columns;
  args.row_end = c.rows;
  c.ex.kernels().add(args);
}

void NormHead(const Qkv& c, const std::optional<bundle::Norm>& norm, float* x, int64_t ldx) {
  if (!norm) return;
  kernels::RmsNormArgs args;
  args.x = x;
  args.ldx = ldx;
  args.weight = c.ex.weight(norm->weight).vector();
  args.eps = static_cast<float>(norm->eps);
  args.k = c.head_dim;
  args.row_end = c.rows;
  args.out = x;
  args.ld_out = ldx;
  c.ex.kernels().rms_norm(args);
}

void Rope(const Qkv& c, float* x, int64_t ldx, int64_t heads) {
  if (!c.step.rope) return;
  const RopeCache& cache = c.ex.rope(*c.step.rope);
  kernels::RopeArgs args;
  args.x = x;
  args.ldx = ldx;
  args.heads = heads;
  args.head_dim = c.head_dim;
  args.rotary = cache.rotary();
  args.table = cache.table();
  args.positions = c.ex.rows().positions() + c.worker->row + c.row;
  args.row_end = c.rows;
  c.ex.kernels().rope(args);
}

/// Query heads [begin, end) straight into the output buffer.
void Queries(const Qkv& c, int64_t begin, int64_t end) {
  if (begin >= end) return;
  const int64_t ld = c.ex.columns(c.step.out);
  float* out = c.ex.floats(c.step.out, *c.worker) + c.row * ld + begin * c.head_dim;
  Project(c, c.step.q, begin, end, out, c.head_dim, ld);
  AddBias(c, begin * c.head_dim, out, ld, (end - begin) * c.head_dim);
  for (int64_t head = begin; head < end; ++head)
    NormHead(c, c.step.q_norm, out + (head - begin) * c.head_dim, ld);
  Rope(c, out, ld, end - begin);
}

/// Writes one KV head's rows of the tile into the pages of their sequences.
void WriteKv(const Qkv& c, int64_t kv_head, const float* k, const float* v, int64_t ld) {
  KvMemory& kv = c.ex.kv();
  kernels::KvWriteArgs args;
  args.layout = kv.PlaneLayout();
  args.layer = c.ex.KvPlane(c.step.layer, kv_head);
  args.pool = kv.data();
  args.ldk = ld;
  args.ldv = ld;
  args.head_begin = 0;
  args.head_end = 1;
  const int64_t first = c.worker->row + c.row;
  for (const RowRange& range : c.worker->view->RangesFrom(first)) {
    const int64_t begin = std::max(range.row, first);
    const int64_t end = std::min(range.row + range.rows, first + c.rows);
    if (begin >= end) break;
    args.pages = range.pages;
    args.start = range.start + (begin - range.row);
    args.rows = end - begin;
    args.k = k + (begin - first) * ld;
    args.v = v + (begin - first) * ld;
    c.ex.kernels().kv_write(args);
  }
}

/// KV heads [begin, end): keys and values side by side in the worker's tile, then to the pages.
void KeysAndValues(const Qkv& c, int64_t begin, int64_t end) {
  const int64_t pair = 2 * c.head_dim;
  const int64_t first_column = c.ex.dims().heads * c.head_dim;
  const HeadRows& k = c.step.k;
  const HeadRows& v = c.step.v;
  const bool one_run =
      k.weight == v.weight && k.stride == pair && v.stride == pair && v.row == k.row + c.head_dim;
  const int64_t per_tile = c.ex.TileColumns(c.rows, 1, pair) / pair;
  for (int64_t at = begin; at < end; at += per_tile) {
    const int64_t stop = std::min(at + per_tile, end);
    const int64_t ld = (stop - at) * pair;
    float* tile = c.worker->tile;
    if (one_run) {
      const int64_t row = k.row + at * pair;
      c.ex.Matmul(c.ex.weight(k.weight), c.in.From(c.row), c.rows, row / kernels::kGroupRows,
                  (row + ld) / kernels::kGroupRows, tile, ld, c.worker);
    } else {
      Project(c, k, at, stop, tile, pair, ld);
      Project(c, v, at, stop, tile + c.head_dim, pair, ld);
    }
    AddBias(c, first_column + at * pair, tile, ld, ld);
    for (int64_t head = at; head < stop; ++head) {
      float* keys = tile + (head - at) * pair;
      NormHead(c, c.step.k_norm, keys, ld);
      Rope(c, keys, ld, 1);
      WriteKv(c, head, keys, keys + c.head_dim, ld);
    }
  }
}

/// The first unit of a worker's share: query heads, then KV heads. A KV head weighs two (keys and
/// values) and goes to the worker that its first half falls to.
int64_t FirstUnit(const bundle::Dims& dims, int worker, int workers) {
  const int64_t half = (dims.heads + 2 * dims.kv_heads) * worker / workers;
  return half <= dims.heads ? half : dims.heads + (half - dims.heads + 1) / 2;
}

}  // namespace

void RunOp(Executor& ex, const QkvStep& step, Worker* worker) {
  const bundle::Dims& dims = ex.dims();
  const Activations in =
      ex.NormInput(step.in, step.norm, {step.q.weight, step.k.weight, step.v.weight}, {}, worker);
  const auto share_of = [&](int owner) {
    return Worker::Range{FirstUnit(dims, owner, worker->count),
                         FirstUnit(dims, owner + 1, worker->count)};
  };
  // Rows of one KV head may be written by several workers at once: a write touches its rows only.
  ForEachBlock(ex, worker, worker->rows, dims.heads + dims.kv_heads, share_of, [&](const Block& b) {
    Qkv c{ex, step, worker, in, dims.head_dim, b.row, b.rows};
    Queries(c, std::min(b.units.begin, dims.heads), std::min(b.units.end, dims.heads));
    KeysAndValues(c, std::max(b.units.begin, dims.heads) - dims.heads,
                  std::max(b.units.end, dims.heads) - dims.heads);
  });
}

}  // namespace tessera::runtime
