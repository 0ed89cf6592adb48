// SPDX-License-Identifier: Apache-2.0
//
// BufferBytes: what rows of a buffer take. The compiler plans with it, the runtime reserves by it.
#pragma once

#include <cstdint>

#include "bundle/program.h"
#include "kernels/matmul.h"

namespace tessera::bundle {

/// Bytes of `rows` rows of `columns` columns, which for kQuantised are a multiple of 32. Must not
/// overflow: callers' limits see to it.
constexpr uint64_t BufferBytes(BufferKind kind, int64_t rows, int64_t columns) {
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

}  // namespace tessera::bundle
