// SPDX-License-Identifier: Apache-2.0
#include "base/cores.h"

#include <hwloc.h>

#include <algorithm>

namespace tessera {

std::vector<Core> ReadCores(const cpu_set_t& allowed) {
  std::vector<Core> cores;
  hwloc_topology_t machine = nullptr;
  if (hwloc_topology_init(&machine) == 0 && hwloc_topology_load(machine) == 0) {
    for (hwloc_obj_t core = nullptr;
         (core = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_CORE, core)) != nullptr;) {
      for (int cpu = hwloc_bitmap_first(core->cpuset); cpu >= 0;
           cpu = hwloc_bitmap_next(core->cpuset, cpu)) {
        if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &allowed)) continue;
        const int node = core->nodeset ? std::max(0, hwloc_bitmap_first(core->nodeset)) : 0;
        cores.push_back({cpu, node});
        break;
      }
    }
  }
  if (machine != nullptr) hwloc_topology_destroy(machine);
  if (cores.empty())
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &allowed)) cores.push_back({cpu, 0});
  return cores;
}

}  // namespace tessera
