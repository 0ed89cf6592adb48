// SPDX-License-Identifier: Apache-2.0
//
// TransportCollective: a rank whose others are in other processes. Each has memory for the segments
// of all; worker 0 exchanges them while the others wait.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "bundle/shard.h"
#include "runtime/arena.h"
#include "runtime/collective.h"
#include "runtime/transport.h"

namespace tessera::runtime {

class TransportCollective final : public Collective {
 public:
  /// Reserves room for steps of `max_rows` rows. `pool` and `transport` must outlive the object.
  static Result<std::unique_ptr<TransportCollective>> Make(const bundle::RankProgram& program,
                                                           int64_t max_rows, ThreadPool* pool,
                                                           Transport* transport);

  float* Segments(int64_t rank, const SegmentSet& set) override {
    return reinterpret_cast<float*>(memory_.data()) + set.Before(rank) * set.floats;
  }
  void Exchange(const SegmentSet& set, int worker) override;
  void Gather(const ColumnsOf& matrix, int worker) override;

 private:
  TransportCollective(ThreadPool* pool, Transport* transport)
      : pool_(pool), transport_(transport) {}
  ThreadPool* const pool_;
  Transport* const transport_;
  Mapping memory_;
  std::vector<int64_t> begins_;  // Of Exchange; reserved.
};

}  // namespace tessera::runtime
