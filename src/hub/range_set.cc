// SPDX-License-Identifier: Apache-2.0
#include "hub/range_set.h"

#include <algorithm>

namespace tessera::hub {

void RangeSet::Add(ByteRange range) {
  if (range.end <= range.begin) return;
  auto it = ends_.upper_bound(range.begin);
  if (it != ends_.begin() && std::prev(it)->second >= range.begin) --it;
  while (it != ends_.end() && it->first <= range.end) {
    range.begin = std::min(range.begin, it->first);
    range.end = std::max(range.end, it->second);
    bytes_ -= it->second - it->first;
    it = ends_.erase(it);
  }
  ends_[range.begin] = range.end;
  bytes_ += range.size();
}

uint64_t RangeSet::end() const {
  return ends_.empty() ? 0 : ends_.rbegin()->second;
}

uint64_t RangeSet::ContiguousEnd() const {
  return ends_.empty() || ends_.begin()->first != 0 ? 0 : ends_.begin()->second;
}

std::vector<ByteRange> RangeSet::Ranges() const {
  std::vector<ByteRange> ranges;
  for (const auto& [begin, end] : ends_) ranges.push_back({begin, end});
  return ranges;
}

std::vector<ByteRange> RangeSet::Missing(uint64_t size) const {
  std::vector<ByteRange> missing;
  uint64_t at = 0;
  for (const auto& [begin, end] : ends_) {
    if (begin >= size) break;
    if (begin > at) missing.push_back({at, begin});
    at = end;
  }
  if (at < size) missing.push_back({at, size});
  return missing;
}

void RangeSet::Clear() {
  ends_.clear();
  bytes_ = 0;
}

}  // namespace tessera::hub
