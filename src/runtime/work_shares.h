// SPDX-License-Identifier: Apache-2.0
//
// WorkShares: the units of a phase, dealt to the workers as equal shares and evened out while they
// run. A worker takes pieces from the front of its own share, ever smaller ones; when nothing is
// left it takes from the back of others', also of one that has not begun because something else
// runs on its core. So a phase ends everywhere at about the same time, whatever a unit costs and
// however evenly the machine runs. Guided self-scheduling (Polychronopoulos, Kuck, IEEE
// Transactions on Computers C-36(12), 1987), from one's own end of a share first.
//
// Who computes a unit is left to chance: nothing that a unit computes may depend on it.
//
// Phases are numbered from 1 by their callers, who pass the same phases in the same order with a
// barrier (ThreadPool::Barrier) between two of them. Every worker calls Take until it is empty.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace tessera::runtime {

class WorkShares {
 public:
  static constexpr int64_t kMaxUnits = (int64_t{1} << 24) - 1;  // Of one share.

  explicit WorkShares(int workers) : shares_(static_cast<size_t>(workers)) {}

  /// Units [begin, end) of the share that was dealt to `owner`; empty = nothing is left.
  struct Piece {
    int owner = 0;
    int64_t begin = 0;
    int64_t end = 0;
    bool empty() const { return begin == end; }
  };

  /// At most `most` (>= 1) units for `worker`. `units_of(owner)` is the size of a share, the same
  /// for every caller.
  template <class UnitsOf>
  Piece Take(int worker, uint64_t phase, int64_t most, const UnitsOf& units_of) {
    const int workers = static_cast<int>(shares_.size());
    Piece piece = TakeFrom(worker, worker, phase, most, units_of(worker));
    // Far shares are not asked: with many workers, looking costs more than what is found.
    for (int i = 1; piece.empty() && i <= kNeighbours && i < workers; ++i) {
      const int owner = (worker + i) % workers;
      piece = TakeFrom(owner, worker, phase, most, units_of(owner));
    }
    return piece;
  }

 private:
  static constexpr int kNeighbours = 4;
  static constexpr int64_t kParts = 8;  // The smallest pieces are this part of a share.
  static constexpr int kBits = 24;
  static constexpr uint64_t kPhaseMask = 0xffff;

  /// [phase : 16][begin : 24][end : 24]: the units nobody has taken. A word of an earlier phase
  /// stands for a whole share. The owner of a share asks for it in every phase, so 16 bits tell
  /// phases apart.
  struct alignas(64) Share {
    std::atomic<uint64_t> left{0};
  };

  Piece TakeFrom(int owner, int worker, uint64_t phase, int64_t most, int64_t units);

  std::vector<Share> shares_;
};

}  // namespace tessera::runtime
