// SPDX-License-Identifier: Apache-2.0
//
// Short measurements of this machine (a fraction of a second each): what a prediction of speed, or
// a bound of it, rests on. Best of several rounds, since neighbours only ever slow a probe down;
// figures of a shared machine move by a quarter from minute to minute all the same.
//
// Each call starts and ends threads of its own, pinned to the topology's cores. Call them while no
// session runs a step. kResourceExhausted when the system gives no such number of threads.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/topology.h"
#include "kernels/probe.h"
#include "tensor/dtype.h"

namespace tessera::runtime {

/// What `threads` threads reach together, all per second. 1 MAC = 2 operations.
struct MachineRates {
  int threads = 1;
  double read_bytes = 0;    // From memory beyond the caches.
  double float_ops = 0;     // f32 fused multiply-add.
  double bfloat16_ops = 0;  // The better of that and dot products of bfloat16.
  /// Int8 dot products: the best instruction mix that is exact for codes of up to 5, 6 and 8 bits.
  double int5_ops = 0;
  double int6_ops = 0;
  double int8_ops = 0;
  double barrier_seconds = 0;  // 0 with one thread.

  struct ProbeRate {
    std::string_view name;  // kernels/probe.h
    double ops = 0;
  };
  std::vector<ProbeRate> probes;  // What the figures above are the best of.

  /// The peak for a matmul with weights of the format: int8 dot products where activations are
  /// quantised, bfloat16 ones for BF16, else float.
  double MatmulOps(tensor::DType weights) const;

  /// Takes what `other`, of as many threads, measured better: neighbours only ever slow a probe.
  void KeepBest(const MachineRates& other);
};

Result<MachineRates> MeasureMachine(const Topology& topology, int threads);

/// Operations a second in one probe of the kernels' table.
Result<double> MeasureOps(const kernels::Probe& probe, const Topology& topology, int threads);

/// Bytes a second that `threads` pinned threads read together from memory beyond the caches.
Result<double> MeasureReadBandwidth(const Topology& topology, int threads);

/// Seconds of one barrier of a thread pool; 0 with one thread.
Result<double> MeasureBarrier(const Topology& topology, int threads);

/// Multiply-accumulates a second of one thread in the matmul kernel that this machine would use for
/// the format, 64 rows at a time. 0 when there is no kernel.
double MeasureMatmulRate(tensor::DType weights);

}  // namespace tessera::runtime
