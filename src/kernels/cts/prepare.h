// SPDX-License-Identifier: Apache-2.0
//
// Activations in the form that a weight format's matmul reads, by the reference kernels.
#pragma once

#include "kernels/cts/data.h"
#include "kernels/ref/ref.h"

namespace tessera::kernels::cts {

inline int64_t PreparedBytes(tensor::DType dtype, int64_t rows, int64_t k) {
  if (UsesQuantisedRows(dtype)) return QuantisedRowsBytes(rows, k);
  return UsesBFloat16Rows(dtype) ? BFloat16RowsBytes(rows, k) : 0;
}

/// Rows [begin, end) of x [..][args->k] on their own: sets q, b and x, ldx and rows of `args`.
/// `buffer` has PreparedBytes(dtype, end - begin, k).
inline void PrepareRows(tensor::DType dtype, const float* x, int64_t begin, int64_t end,
                        std::byte* buffer, MatmulArgs* args) {
  const int64_t k = args->k, rows = end - begin;
  args->x = x + begin * k;
  args->ldx = k;
  args->rows = rows;
  if (UsesQuantisedRows(dtype)) {
    args->q = MakeQuantisedRows(buffer, rows, k);
    ref::Quantise({.x = args->x, .ldx = k, .k = k, .row_end = rows, .out = args->q});
  } else if (UsesBFloat16Rows(dtype)) {
    args->b = MakeBFloat16Rows(buffer, rows);
    ref::Round({.x = args->x, .ldx = k, .k = k, .row_end = rows, .out = args->b});
  }
}

}  // namespace tessera::kernels::cts
