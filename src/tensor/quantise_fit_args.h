// SPDX-License-Identifier: Apache-2.0
//
// Internal to quantise_fit*.cc: the one function that is compiled for several instruction sets.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace tessera::tensor {

struct FitArgs {
  DType dtype;
  const float* row;         // [columns], finite, at most kMaxFitMagnitude
  const float* importance;  // [columns], or null
  int64_t columns;          // Whole blocks.
  uint8_t* out;
};

void FitRowPortable(const FitArgs& args);
/// Requires a CPU with AVX2.
void FitRowAvx2(const FitArgs& args);

}  // namespace tessera::tensor
