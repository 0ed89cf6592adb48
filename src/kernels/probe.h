// SPDX-License-Identifier: Apache-2.0
//
// Probes: instruction mixes that bound what a kernel can reach, and a plain stream of reads. No
// kernel of a model; what a machine's figures are compared with (runtime/machine_probe.h times
// them).
//
// Pure functions over registers or the caller's memory, for any thread. Each repeats one mix on
// independent accumulators, enough of them to cover the instructions' latency.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/topology.h"
#include "kernels/catalog.h"

namespace tessera::kernels {

/// What the mix computes. The dot products of bytes are exact in int32 for weight codes of so many
/// bits and int8 activations: narrower codes may be added up longer in int16.
enum class Mix : uint8_t { kFloatFma, kDotBFloat16, kDot5Bits, kDot6Bits, kDot8Bits };

struct Probe {
  Mix mix;
  KernelIsa isa;
  std::string_view name;  // "maddubs_x4.avx2": unique
  int64_t ops_per_iteration;
  /// Returns a value that depends on every operation.
  uint64_t (*run)(int64_t iterations);
};

/// Every probe. The baseline's float probe runs on any x86-64; byte dot products have no baseline.
std::span<const Probe> Probes();

/// Reads all bytes once, in order, and returns a value that depends on all. `data` aligned to 64,
/// `bytes` a multiple of 256. The widest loads that the machine has.
using ReadFn = uint64_t (*)(const std::byte* data, int64_t bytes);
ReadFn FindRead(const Isa& machine);

}  // namespace tessera::kernels
