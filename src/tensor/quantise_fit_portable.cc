// SPDX-License-Identifier: Apache-2.0
#include "tensor/quantise_fit_blocks.h"

namespace tessera::tensor {

void FitRowPortable(const FitArgs& args) {
  EncodeRow<float>(args);
}

}  // namespace tessera::tensor
