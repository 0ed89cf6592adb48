// SPDX-License-Identifier: Apache-2.0
//
// Short measurements of this machine (a fraction of a second): what a prediction of speed rests on.
// Figures of a shared machine move by a quarter from minute to minute.
#pragma once

#include "base/status.h"
#include "base/topology.h"
#include "tensor/dtype.h"

namespace tessera::cli {

/// Bytes a second that `threads` pinned threads read together from memory beyond the caches.
double MeasureReadBandwidth(const Topology& topology, int threads);

/// Multiply-accumulates a second of one thread in the matmul kernel that this machine would use for
/// the format, 64 rows at a time. 0 when there is no kernel.
double MeasureMatmulRate(tensor::DType weights);

}  // namespace tessera::cli
