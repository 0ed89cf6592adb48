// SPDX-License-Identifier: Apache-2.0
//
// RangeSet: which bytes of a file are there, as disjoint ascending ranges with gaps between them. A
// plain value.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "hub/http.h"

namespace tessera::hub {

class RangeSet {
 public:
  /// Adds [begin, end); overlaps and neighbours are joined. Nothing happens for an empty range.
  void Add(ByteRange range);
  /// Sum of sizes.
  uint64_t bytes() const { return bytes_; }
  /// End of the last range; 0 when empty.
  uint64_t end() const;
  /// Bytes there without a gap from the file's beginning.
  uint64_t ContiguousEnd() const;
  std::vector<ByteRange> Ranges() const;
  /// What lacks of [0, size), ascending.
  std::vector<ByteRange> Missing(uint64_t size) const;
  void Clear();

 private:
  std::map<uint64_t, uint64_t> ends_;  // Begin -> end.
  uint64_t bytes_ = 0;
};

}  // namespace tessera::hub
