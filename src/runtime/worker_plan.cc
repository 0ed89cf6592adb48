// SPDX-License-Identifier: Apache-2.0
#include "runtime/worker_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/check.h"

namespace tessera::runtime {
namespace {

using Devices = std::map<int, std::vector<Core>>;

/// "NUMA nodes 0, 8" or "one NUMA node and cores 0 to 3".
std::string Describe(const Devices& devices, bool by_node) {
  if (!by_node)
    return fmt::format("one NUMA node and cores {} to {}", devices.begin()->first,
                       devices.rbegin()->first);
  std::vector<int> ids;
  for (const auto& [id, cores] : devices) ids.push_back(id);
  return fmt::format("NUMA nodes {}", fmt::join(ids, ", "));
}

/// What is left for a rank when the ranks on the same CPUs divide them.
std::vector<Core> PartOf(const std::vector<Core>& cores, const Neighbours& neighbours) {
  const size_t index = static_cast<size_t>(neighbours.index);
  const size_t count = static_cast<size_t>(neighbours.count);
  const auto at = [&](size_t i) {
    return cores.begin() + static_cast<ptrdiff_t>(cores.size() * i / count);
  };
  return {at(index), at(index + 1)};
}

}  // namespace

Result<std::vector<Core>> CoresOf(const std::vector<int>& device_ids, const Topology& topology) {
  if (device_ids.empty()) return topology.cores;
  Devices devices;
  for (const Core& core : topology.cores) devices[core.numa_node].push_back(core);
  const bool by_node = devices.size() > 1;
  if (!by_node) {
    devices.clear();
    for (size_t i = 0; i < topology.cores.size(); ++i)
      devices[static_cast<int>(i)] = {topology.cores[i]};
  }
  size_t least = topology.cores.size();
  std::set<int> seen;
  for (const int id : device_ids) {
    const auto found = devices.find(id);
    if (found == devices.end() || !seen.insert(id).second)
      return Fail(InvalidArgument(fmt::format(
          "device id {} {}; this machine has {}", id,
          found == devices.end() ? "is not there" : "is named twice", Describe(devices, by_node))));
    least = std::min(least, found->second.size());
  }
  std::vector<Core> cores;
  for (const int id : device_ids)
    cores.insert(cores.end(), devices[id].begin(),
                 devices[id].begin() + static_cast<ptrdiff_t>(least));
  return cores;
}

Result<WorkerPlan> PlanWorkers(const WorkerWish& wish, const Topology& topology) {
  const Neighbours& others = wish.neighbours;
  TESSERA_CHECK(wish.ranks >= 1 && others.index >= 0 && others.index < others.count);
  TESSERA_ASSIGN_OR_RETURN(const std::vector<Core> all, CoresOf(wish.device_ids, topology));
  const std::vector<Core> cores = PartOf(all, others);
  const int own = static_cast<int>(cores.size());
  int wanted = own;
  // What the cgroup grants is for all ranks of the machine. Cores that are named are wanted.
  if (wish.device_ids.empty() && topology.cpu_quota > 0)
    wanted = std::min(wanted, static_cast<int>(std::lround(topology.cpu_quota / others.here)));
  if (wish.threads > 0) wanted = wish.threads;
  WorkerPlan plan;
  plan.threads = std::max(1, wanted / wish.ranks) * wish.ranks;
  plan.crowded = plan.threads > own && wish.ranks * others.count > 1;
  // More threads than cores: pinning would only put two on one core.
  if (wish.pin && plan.threads <= own)
    for (int i = 0; i < plan.threads; ++i) plan.cpus.push_back(cores[static_cast<size_t>(i)].cpu);
  return plan;
}

}  // namespace tessera::runtime
