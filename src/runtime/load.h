// SPDX-License-Identifier: Apache-2.0
//
// From a bundle on disk to a Session: maps, checks, plans memory once, starts the threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "base/topology.h"
#include "bundle/bundle.h"
#include "kernels/attention.h"
#include "runtime/kv_budget.h"
#include "runtime/session.h"
#include "runtime/transport.h"

namespace tessera::runtime {

struct LoadOptions {
  int threads = 0;  // 0: one per physical core that we may use.
  /// NUMA nodes to run on or, where the machine has one node, cores; empty: all. With as many as
  /// there are ranks each rank gets one.
  std::vector<int> device_ids = {};
  bool pin_threads = true;  // To one core each; the caller of Step() while it runs.
  KvWish kv = {};           // By default one sequence of max_seq_len.
  kernels::KvType kv_type = kernels::KvType::kF16;
  int64_t max_rows = 512;  // Tokens of one step over all chunks; scratch grows with it.
  /// Weights leave this process's resident memory when a layer is done with them, so that one pass
  /// over a model of any size needs a layer or the head at a time. Every step reads them anew.
  bool release_weights = false;
  bool verify_parameters = false;  // Hash model.irpa, too: reads all of it.
  std::optional<Isa> isa =
      std::nullopt;  // Nothing: what the machine has. Isa{}: the scalar references.
  /// The group of processes that this one is a rank of; the bundle is made for as many. Null: all
  /// ranks run here.
  std::shared_ptr<Transport> transport = nullptr;
};

/// kNotFound when the folder is no bundle, kDataLoss (one line: which file and what differs) when
/// it is damaged, kUnimplemented for another target or version, kInvalidArgument for options out of
/// range, kResourceExhausted when memory cannot be reserved. Parameters are mapped, not copied;
/// KV pages and scratch are reserved, and use memory when they are first written.
Result<std::unique_ptr<Session>> LoadSession(const std::filesystem::path& bundle,
                                             const LoadOptions& options = {});
/// The same of one that is open.
Result<std::unique_ptr<Session>> LoadSession(bundle::Bundle bundle, const LoadOptions& options);

}  // namespace tessera::runtime
