// SPDX-License-Identifier: Apache-2.0
//
// SharedCollective: ranks of one process. Segments are read where they were written; nothing is
// copied. The ranks' workers are one pool, whose barrier is everybody's.
#pragma once

#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "bundle/shard.h"
#include "runtime/arena.h"
#include "runtime/collective.h"

namespace tessera::runtime {

class SharedCollective final : public Collective {
 public:
  /// Reserves room for steps of `max_rows` rows. `pool` must outlive the object.
  static Result<std::unique_ptr<SharedCollective>> Make(
      const std::vector<bundle::RankProgram>& ranks, int64_t max_rows, ThreadPool* pool);

  float* Segments(int64_t rank, const SegmentSet&) override {
    return reinterpret_cast<float*>(memory_[static_cast<size_t>(rank)].data());
  }
  void Exchange(const SegmentSet&, int worker) override { pool_->Barrier(worker); }
  bundle::Interval Own(const SegmentSet& set) const override { return {0, set.floats}; }
  void Share(float*, const SegmentSet&, int) override {}  // They add to the same memory.
  void Gather(const ColumnsOf&, int) override {}          // All write rank 0's memory.

 private:
  explicit SharedCollective(ThreadPool* pool) : pool_(pool) {}
  ThreadPool* const pool_;
  std::vector<Mapping> memory_;  // By rank.
};

/// Bytes of the segments that a rank, or all ranks together, write in a step of `rows` rows.
uint64_t SegmentBytes(const bundle::RankProgram& program, int64_t rows, bool all_ranks);

}  // namespace tessera::runtime
