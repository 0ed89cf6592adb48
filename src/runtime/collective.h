// SPDX-License-Identifier: Apache-2.0
//
// Collective: how the ranks of a tensor-parallel group bring together what each computed apart. A
// projection whose inputs are cut is a sum of segments (kernels/matmul.h). Every rank writes its
// own segments, each a matrix [rows][columns] of float32, to where Segments() says; Exchange()
// makes those values of all of them readable that this process adds; each value is added in the
// order of the segments, whoever adds it; Share() gives the sums to all. So the numbers do not
// depend on how many ranks there are, nor on what carries them.
//
// Threads: every worker of a rank calls Exchange, Share and Gather, as often as every other.
#pragma once

#include <cstdint>
#include <span>

#include "bundle/shard.h"

namespace tessera::runtime {

/// The segments of one projection in one step.
struct SegmentSet {
  std::span<const int64_t> counts;  // By rank, whose segments follow each other.
  int64_t floats = 0;               // Of one segment.

  int64_t Before(int64_t rank) const {
    int64_t before = 0;
    for (int64_t i = 0; i < rank; ++i) before += counts[static_cast<size_t>(i)];
    return before;
  }
};

/// Columns [begin, end) of a matrix, row-major with `columns` columns, that a rank has computed.
struct ColumnsOf {
  float* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  std::span<const int64_t> begins;  // By rank; one more for the end of the last.
};

class Collective {
 public:
  virtual ~Collective() = default;

  /// Where the segments of a rank lie, one after the other. Of other ranks' only after Exchange,
  /// and until the next barrier of all workers that is followed by writing.
  virtual float* Segments(int64_t rank, const SegmentSet& set) = 0;

  /// A barrier: afterwards the values Own(set) of the segments of all ranks can be read.
  virtual void Exchange(const SegmentSet& set, int worker) = 0;
  /// The values of a segment, [begin, end), that the ranks of this process add.
  virtual bundle::Interval Own(const SegmentSet& set) const = 0;
  /// The values Own(set) of `sums`, which has as many as a segment, are added: all processes get
  /// all, by the next barrier of all workers.
  virtual void Share(float* sums, const SegmentSet& set, int worker) = 0;

  /// When the step has ended, rank 0 has all columns. What the others have is undefined.
  virtual void Gather(const ColumnsOf& matrix, int worker) = 0;
};

}  // namespace tessera::runtime
