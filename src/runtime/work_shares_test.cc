// SPDX-License-Identifier: Apache-2.0
#include "runtime/work_shares.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/thread_pool.h"

namespace tessera::runtime {
namespace {

using Piece = WorkShares::Piece;

TEST(WorkShares, AWorkerAloneTakesItsShareInOrderInEverSmallerPieces) {
  WorkShares shares(1);
  const auto units = [](int) { return int64_t{20}; };
  std::vector<int64_t> sizes;
  int64_t next = 0;
  for (Piece piece; !(piece = shares.Take(0, 1, 8, units)).empty();) {
    EXPECT_EQ(piece.begin, next);
    next = piece.end;
    sizes.push_back(piece.end - piece.begin);
  }
  EXPECT_EQ(sizes, (std::vector<int64_t>{8, 6, 3, 3}));
}

TEST(WorkShares, TheOneThatIsDoneTakesFromTheBackOfOneThatHasNotBegun) {
  WorkShares shares(2);
  const auto units = [](int owner) { return owner == 0 ? int64_t{0} : int64_t{10}; };
  const Piece stolen = shares.Take(0, 1, 100, units);
  EXPECT_EQ(stolen.owner, 1);
  EXPECT_EQ(stolen.begin, 5);
  EXPECT_EQ(stolen.end, 10);
  const Piece own = shares.Take(1, 1, 100, units);
  EXPECT_EQ(own.begin, 0);
  EXPECT_EQ(own.end, 3);
}

TEST(WorkShares, AnEmptyShareIsDoneInEveryPhase) {
  WorkShares shares(2);
  const auto none = [](int) { return int64_t{0}; };
  for (uint64_t phase = 1; phase < 4; ++phase)
    for (int worker : {0, 1}) EXPECT_TRUE(shares.Take(worker, phase, 4, none).empty());
}

TEST(WorkShares, PhasesAreToldApartForEver) {
  WorkShares shares(1);
  const auto units = [](int) { return int64_t{3}; };
  for (uint64_t phase = 1; phase <= 200'000; ++phase) {  // A word tells 65536 apart.
    int64_t taken = 0;
    for (Piece p; !(p = shares.Take(0, phase, 2, units)).empty();) taken += p.end - p.begin;
    ASSERT_EQ(taken, 3);
  }
}

TEST(WorkShares, EveryUnitIsTakenOnceWhateverTheThreadsDo) {
  constexpr int kThreads = 3, kPhases = 2000;
  const auto pool = *ThreadPool::Make(kThreads, {});
  WorkShares shares(kThreads);
  const auto units = [](int owner) { return int64_t{7 * owner}; };  // 0, 7 and 14.
  std::vector<std::vector<int>> taken(kThreads);
  for (int owner = 0; owner < kThreads; ++owner)
    taken[static_cast<size_t>(owner)].assign(static_cast<size_t>(units(owner)), 0);
  pool->Run([&](int worker) {
    for (uint64_t phase = 1; phase <= kPhases; ++phase) {
      for (Piece p; !(p = shares.Take(worker, phase, 2, units)).empty();)
        for (int64_t unit = p.begin; unit < p.end; ++unit)
          ++taken[static_cast<size_t>(p.owner)][static_cast<size_t>(unit)];
      pool->Barrier(worker);
    }
  });
  for (const std::vector<int>& units_taken : taken)
    for (const int count : units_taken) EXPECT_EQ(count, kPhases);
}

}  // namespace
}  // namespace tessera::runtime
