// SPDX-License-Identifier: Apache-2.0
//
// What the machine offers to this process: physical cores it may run on (affinity mask respected),
// the cgroup's CPU quota, memory, and instruction sets. Read once at start; values, no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tessera {

struct Core {
  int cpu = 0;  // The logical CPU to pin to: the first of the core that we may use.
  int numa_node = 0;
};

struct Topology {
  std::vector<Core> cores;    // Physical cores in our affinity mask.
  int logical_cpus = 0;       // Logical CPUs in our affinity mask.
  double cpu_quota = 0;       // CPUs that the cgroup and its parents grant; 0 = no limit.
  uint64_t memory_bytes = 0;  // Of the machine, or the cgroup's limit if lower.
  uint64_t memory_available = 0;
  std::string cpu_name;

  /// Threads to use by default: one per physical core, not more than the quota, at least 1.
  int DefaultThreads() const;
};

Topology ReadTopology();

/// Memory of a cgroup (version 2), by its folder. Available is what the limit leaves, page cache
/// counted as free, since the kernel takes it back. Nothing when there is no limit.
struct CgroupMemory {
  uint64_t limit = 0;
  uint64_t available = 0;
};
std::optional<CgroupMemory> ReadCgroupMemory(const std::string& folder);

/// CPUs that a cgroup (version 2), by its folder, grants; 0 when there is no limit.
double ReadCgroupQuota(const std::string& folder);

/// Instruction sets that matter to kernels, as the CPU and the operating system allow them.
struct Isa {
  bool avx2 = false;    // with FMA, F16C and BMI2: x86-64-v3
  bool avx512 = false;  // F, BW, DQ, VL, CD: x86-64-v4
  bool avx512_vnni = false;
  bool avx_vnni = false;
  bool avx512_bf16 = false;
  bool amx_int8 = false;

  /// "avx2 fma f16c avx512 ..." for people.
  std::string ToString() const;
};

Isa ReadIsa();

/// `machine` without what lies above a level: "ref" (nothing: scalar kernels), "avx2",
/// "avx_vnni" (avx2 with it), "avx512" (without VNNI), "avx512_vnni", or "auto" (all of it).
/// kInvalidArgument for another word, kFailedPrecondition for a level that the machine lacks.
Result<Isa> CapIsa(const Isa& machine, std::string_view level);

}  // namespace tessera
