// SPDX-License-Identifier: Apache-2.0
//
// The machine's best kernels over logits. All that there are give the same bits. Any thread.
#pragma once

#include "base/topology.h"
#include "kernels/catalog.h"

namespace tessera::engine {

inline const kernels::RowKernels& MachineKernels() {
  static const kernels::RowKernels kernels = kernels::SelectRowKernels(ReadIsa());
  return kernels;
}

}  // namespace tessera::engine
