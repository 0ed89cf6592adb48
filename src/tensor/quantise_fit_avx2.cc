// SPDX-License-Identifier: Apache-2.0
//
// Compiled with -mavx2; without it (another architecture) the compiler makes the eight lanes of
// what it has.
#include "tensor/quantise_fit_blocks.h"

namespace tessera::tensor {
namespace {

using EightFloats = float __attribute__((vector_size(32)));

}  // namespace

void FitRowAvx2(const FitArgs& args) {
  EncodeRow<EightFloats>(args);
}

}  // namespace tessera::tensor
