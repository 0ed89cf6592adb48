// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"
#include "kernels/pack.h"
#include "runtime/steps/steps.h"
#include "tensor/convert.h"

namespace tessera::runtime {
namespace {

void LookUp(const BoundWeight& table, int64_t token, std::span<float> out) {
  if (table.layout == bundle::WeightLayout::kPacked8) {
    kernels::UnpackRow(table.dtype, table.k, table.data, token, out.data());
    return;
  }
  const uint64_t row_bytes = *tensor::RowBytes(table.dtype, static_cast<uint64_t>(table.k));
  const ByteSpan row(table.data + static_cast<uint64_t>(token) * row_bytes, row_bytes);
  // The type and the size were checked when the weight was bound.
  TESSERA_CHECK(tensor::ToFloat(table.dtype, row, out).ok());
}

}  // namespace

// Shares rows, each whole: a lookup is a copy.
void RunOp(Executor& ex, const bundle::EmbedStep& step, Worker* worker) {
  const BoundWeight& table = ex.weight(step.table);
  const auto columns = static_cast<size_t>(ex.columns(step.out));
  const auto scale = static_cast<float>(step.scale);
  const Worker::Range share = worker->GroupShare(worker->rows);
  for (int64_t row = share.begin; row < share.end; ++row) {
    const std::span<float> out(ex.floats(step.out, *worker) + row * ex.columns(step.out), columns);
    LookUp(table, ex.rows().tokens()[worker->row + row], out);
    if (scale != 1)
      for (float& value : out) value *= scale;
  }
}

}  // namespace tessera::runtime
