// SPDX-License-Identifier: Apache-2.0
//
// Segments: the steps of a program between the points where rows meet. Attention reads keys and
// values that all rows wrote in the segment before; within a segment a row depends on itself only,
// so one worker may carry a strip of rows (row_view.h) through all of it. The head is a segment of
// its own: its few rows are shared by columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bundle/program.h"
#include "runtime/row_view.h"

namespace tessera::runtime {

struct Segment {
  size_t begin = 0;  // Of Program::steps.
  size_t end = 0;
  /// Nothing that follows needs other rows than those that want logits.
  bool wanted_only = false;
  /// Strips may run it: what it reads in blocks (bundle::BufferKind) it has written itself.
  bool strips = false;
};

std::vector<Segment> SegmentsOf(const bundle::Program& program);

/// The weights of the segment that has most of them; rows of an embedding table do not count.
struct LargestSegment {
  uint64_t bytes = 0;
  uint64_t elements = 0;
};
LargestSegment LargestSegmentOf(const bundle::Program& program);

/// Buffers of float32 that segments of wanted rows read and did not write: their rows have to be
/// put together first.
std::vector<bundle::BufferIndex> GatheredBuffers(const bundle::Program& program,
                                                 const std::vector<Segment>& segments);

StripPolicy StripPolicyOf(const bundle::Program& program);

}  // namespace tessera::runtime
