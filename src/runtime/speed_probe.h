// SPDX-License-Identifier: Apache-2.0
//
// How fast a program will run on this machine, before there are parameters: a copy of it, cut to
// its first layers, runs on zeros, and the time of the whole follows from the work that both must
// do (step_work.h). Kernels take the same time whatever the weights are. Small programs are not cut
// at all: then this is a measurement of the program itself.
//
// Takes seconds and up to kProbeBytes of memory and of disk space in the temporary folder, both
// given back. Call it while no session runs a step.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "bundle/program.h"
#include "runtime/load.h"

namespace tessera::runtime {

/// Packed weights of the copy that become memory, at the most.
inline constexpr int64_t kProbeBytes = int64_t{2} << 30;

struct ProgramSpeed {
  double prefill_seconds = 0;  // Of a prompt of `prompt` tokens, to its last logits.
  double decode_seconds = 0;   // Of the token after it.
  int64_t layers_run = 0;      // Of the program's; 0: not measured, see below.
};

/// `program` must be verified. Where a single layer exceeds kProbeBytes or a quarter of the free
/// memory, the figures are the bound of step_work.h from a measurement of the machine, divided by
/// the share of it that programs reach. Of `options`, threads, isa and the KV type count.
Result<ProgramSpeed> PredictSpeed(const bundle::Program& program, int64_t prompt,
                                  const LoadOptions& options);

}  // namespace tessera::runtime
