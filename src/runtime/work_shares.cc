// SPDX-License-Identifier: Apache-2.0
#include "runtime/work_shares.h"

#include <algorithm>

#include "base/check.h"

namespace tessera::runtime {

WorkShares::Piece WorkShares::TakeFrom(int owner, int worker, uint64_t phase, int64_t most,
                                       int64_t units) {
  TESSERA_DCHECK(units >= 0 && units <= kMaxUnits && most >= 1);
  constexpr uint64_t kUnitMask = kMaxUnits;
  const bool own = owner == worker;
  const int64_t least = (units + kParts - 1) / kParts;
  const uint64_t tag = phase & kPhaseMask;
  std::atomic<uint64_t>& left = shares_[static_cast<size_t>(owner)].left;
  // What a unit computes is published by the barrier after the phase, not by this word.
  uint64_t seen = left.load(std::memory_order_relaxed);
  for (;;) {
    const bool begun = seen >> (2 * kBits) == tag;
    const auto begin = static_cast<int64_t>(begun ? seen >> kBits & kUnitMask : 0);
    const auto end = begun ? static_cast<int64_t>(seen & kUnitMask) : units;
    if (begin == end && (begun || !own)) return {};
    // Half of what is left, so that the last pieces are small, but not so small that the switch
    // from one to the next costs more than it evens out.
    const int64_t count = std::min({most, end - begin, std::max(least, (end - begin + 1) / 2)});
    const Piece piece = own ? Piece{owner, begin, begin + count} : Piece{owner, end - count, end};
    const auto rest_begin = static_cast<uint64_t>(own ? piece.end : begin);
    const auto rest_end = static_cast<uint64_t>(own ? end : piece.begin);
    const uint64_t rest = tag << (2 * kBits) | rest_begin << kBits | rest_end;
    if (left.compare_exchange_weak(seen, rest, std::memory_order_relaxed)) return piece;
  }
}

}  // namespace tessera::runtime
