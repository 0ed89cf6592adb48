// SPDX-License-Identifier: Apache-2.0
//
// The physical cores of a machine as its kernel describes them (sysfs, through hwloc). Part of
// ReadTopology; apart so that tests can read machines that are made up.
#pragma once

#include <sched.h>

#include <vector>

#include "base/topology.h"

namespace tessera {

/// Those with a logical CPU in `allowed`, each with the first such, in the order of hwloc: NUMA
/// nodes one after the other. Offline CPUs do not count. Where the kernel describes no cores, each
/// CPU of `allowed` is one of node 0. hwloc's HWLOC_FSROOT names another root than /.
std::vector<Core> ReadCores(const cpu_set_t& allowed);

}  // namespace tessera
