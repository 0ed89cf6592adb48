// SPDX-License-Identifier: Apache-2.0
//
// RankGroup: the executors of the ranks that run in this process, one for an unsharded program, and
// the pool whose workers they are: rank i has workers [i * n, (i + 1) * n). A step is filled and
// run for all of them together.
//
// One owner thread calls it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "base/topology.h"
#include "bundle/bundle.h"
#include "runtime/collective.h"
#include "runtime/executor.h"
#include "runtime/kv_memory.h"
#include "runtime/step_rows.h"
#include "runtime/transport.h"

namespace tessera::runtime {

class RankGroup {
 public:
  /// All given must outlive the group. The pool's size is a multiple of the number of ranks here.
  /// With `transport` there is one, and the others are in other processes. `after_segment`: as
  /// ExecutorPlace has it.
  static Result<std::unique_ptr<RankGroup>> Make(const bundle::Bundle& bundle, KvMemory* kv,
                                                 const Isa& isa, int64_t max_rows, ThreadPool* pool,
                                                 Transport* transport,
                                                 std::function<void()> after_segment = {});

  /// Takes a step. Errors as Session::Step documents.
  Status Fill(std::span<const Chunk> chunks);
  /// Runs it.
  void Run();

  /// Of the last run.
  const StepRows& rows() const { return *members_.front().rows; }
  const Executor& lead() const { return *members_.front().executor; }
  /// Of all ranks together.
  WorkCounters counters() const;
  uint64_t scratch_bytes() const;
  std::vector<std::span<const std::byte>> scratch() const;

 private:
  struct Member {
    std::unique_ptr<StepRows> rows;
    std::unique_ptr<Executor> executor;
  };
  explicit RankGroup(ThreadPool* pool) : pool_(pool) {}
  Status AddMember(const bundle::Bundle& bundle, size_t rank, KvMemory* kv, const Isa& isa,
                   int64_t max_rows);

  ThreadPool* const pool_;
  int workers_ = 0;  // Of each rank.
  bool may_split_heads_ = false;
  bool is_apart_ = false;        // The KV memory holds this rank's heads only.
  std::vector<Mapping> splats_;  // Weights that the archive has as patterns.
  std::unique_ptr<Collective> collective_;
  std::vector<Member> members_;
  std::function<void(int)> run_;
  std::function<void()> after_segment_;
};

}  // namespace tessera::runtime
