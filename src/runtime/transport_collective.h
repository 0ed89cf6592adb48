// SPDX-License-Identifier: Apache-2.0
//
// TransportCollective: a rank whose others are in other processes. Each has memory for the segments
// of all; worker 0 exchanges them while the others wait. A rank adds its share of the values only,
// of which it gets the segments, and then all get the sums: so a value travels about twice instead
// of once a segment. Small sets travel whole, which takes one exchange instead of two.
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
  bundle::Interval Own(const SegmentSet& set) const override;
  void Share(float* sums, const SegmentSet& set, int worker) override;
  void Gather(const ColumnsOf& matrix, int worker) override;

 private:
  TransportCollective(ThreadPool* pool, Transport* transport)
      : pool_(pool), transport_(transport) {}
  ThreadPool* const pool_;
  /// Whether a rank adds its own share only.
  bool IsShared(const SegmentSet& set) const;
  int64_t ShareBegin(const SegmentSet& set, int64_t rank) const;
  /// Into begins_.
  void BeginsOfShares(const SegmentSet& set);

  Transport* const transport_;
  Mapping memory_;
  std::vector<int64_t> begins_;  // Worker 0's; reserved.
};

}  // namespace tessera::runtime
