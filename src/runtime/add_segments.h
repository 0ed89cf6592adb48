// SPDX-License-Identifier: Apache-2.0
//
// AddSegments: the end of a projection whose segments were summed apart: the same additions in the
// same order that a matmul of all segments and the step after it make.
#pragma once

#include <cstdint>
#include <span>

namespace tessera::runtime {

struct AddSegmentsArgs {
  std::span<const float* const> segments;  // At least one, `columns` values each.
  const float* bias = nullptr;             // Null: none.
  /// Subnormal sums of segments count as zero of their sign: BF16 weights (kernels/matmul.h).
  bool flush = false;
  int64_t columns = 0;
  float* residual = nullptr;  // += ((s_0 + s_1) + ...) + bias
};
void AddSegments(const AddSegmentsArgs& args);

}  // namespace tessera::runtime
