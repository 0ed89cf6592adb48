// SPDX-License-Identifier: Apache-2.0
//
// WorkerPlan: how many workers a session has and on which CPUs, from the machine, --device_ids, and
// the other ranks that run on the same CPUs. A pure function; any thread.
#pragma once

#include <vector>

#include "base/status.h"
#include "base/topology.h"
#include "runtime/transport.h"

namespace tessera::runtime {

struct WorkerWish {
  int threads = 0;  // 0: one per core that may be used.
  std::vector<int> device_ids = {};
  bool pin = true;
  int ranks = 1;  // In this process; each gets the same number of workers, one at the least.
  Neighbours neighbours = {};
};

struct WorkerPlan {
  int threads = 1;
  std::vector<int> cpus;  // By worker; empty: not pinned.
  /// There are fewer cores than workers: who waits gives its core away at once.
  bool crowded = false;
};

/// The cores of the device ids, those of one id after the other, as many of each, so that ranks of
/// equal numbers of workers stay on theirs. Ids are the system's numbers of NUMA nodes, or, where
/// the cores that we may use are of one node, cores counted from 0. No ids: all cores.
/// kInvalidArgument for an id that is not there or named twice, with those that are.
Result<std::vector<Core>> CoresOf(const std::vector<int>& device_ids, const Topology& topology);

/// Errors of CoresOf. Ranks in other processes that may use the same CPUs divide the cores: with
/// as many device ids as ranks each has the cores of one.
Result<WorkerPlan> PlanWorkers(const WorkerWish& wish, const Topology& topology);

}  // namespace tessera::runtime
