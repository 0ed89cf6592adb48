// SPDX-License-Identifier: Apache-2.0
//
// Transport: moves numbers between the processes of a tensor-parallel group. Every process makes
// the same calls in the same order. A group that has lost a member cannot go on: what cannot be
// done ends the process, and with it the group, with one line on stderr and a status that is not
// zero.
//
// Calls come from one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/collective.h"

namespace tessera::runtime {

/// The ranks of this machine, and those of them that may use the same CPUs as this one.
struct Neighbours {
  int here = 1;   // Ranks on this machine,
  int index = 0;  // and which this one is of those
  int count = 1;  // that share its CPUs.
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual Neighbours neighbours() const { return {}; }

  /// Until all ranks are here, however long that takes.
  virtual void Meet() = 0;

  /// Rank 0's bytes to all. May wait for as long as rank 0 has nothing to say, without using a CPU.
  virtual void Broadcast(std::span<std::byte> bytes) = 0;
  /// Every rank has written its own segments of the set; afterwards rank i has values
  /// [begins[i], begins[i + 1]) of all segments. Segments lie in `data` in their order.
  virtual void Scatter(float* data, const SegmentSet& set, std::span<const int64_t> begins) = 0;
  /// Rank i has written floats [begins[i], begins[i + 1]) of `data`; afterwards all have all.
  virtual void AllGather(float* data, std::span<const int64_t> begins) = 0;
  /// Afterwards rank 0 has the columns of all.
  virtual void GatherColumns(const ColumnsOf& matrix) = 0;
  /// Ends the group.
  [[noreturn]] virtual void Abort(std::string_view why) = 0;
};

}  // namespace tessera::runtime
