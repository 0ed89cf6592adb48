// SPDX-License-Identifier: Apache-2.0
//
// Blocks: how a matmul step is cut. Rows go in tiles of kTileRows, columns in units of the step's
// choice; every worker is dealt a run of units, which it walks tile after tile while the weights of
// its columns stay in its cache, and what is left over goes to whoever is free (work_shares.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/executor.h"
#include "runtime/limits.h"

namespace tessera::runtime {

/// Four groups of eight columns: what the widest kernel computes at once.
inline constexpr int64_t kUnitGroups = 4;

struct Block {
  int64_t row = 0;  // Rows [row, row + rows) of those at work.
  int64_t rows = 0;
  Worker::Range units;
};

/// Rows of every tile but the last.
inline int64_t TileRows(int64_t rows) {
  return std::min(rows, kTileRows);
}

/// Calls run(block) for blocks of at most `most` units until all workers' are taken. `share_of`
/// (owner) is the Worker::Range of units dealt to it. Every worker calls it, once a phase, or one
/// alone for its strip.
template <class ShareOf, class Run>
void ForEachBlock(Executor& ex, Worker* worker, int64_t rows, int64_t most, const ShareOf& share_of,
                  const Run& run) {
  if (worker->alone) {  // A strip is one tile, and nobody else is there: equal blocks.
    const Worker::Range all = share_of(0);
    const int64_t units = all.end - all.begin, blocks = (units + most - 1) / most;
    for (int64_t i = 0; i < blocks; ++i)
      run(Block{0, rows, {all.begin + units * i / blocks, all.begin + units * (i + 1) / blocks}});
    return;
  }
  const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  const auto units_of = [&](int owner) {
    const Worker::Range share = share_of(owner);
    return tiles * (share.end - share.begin);
  };
  ++worker->phase;
  for (;;) {
    const WorkShares::Piece piece = ex.shares().Take(worker->index, worker->phase, most, units_of);
    if (piece.empty()) return;
    const Worker::Range share = share_of(piece.owner);
    const int64_t width = share.end - share.begin;
    for (int64_t at = piece.begin; at < piece.end;) {
      const int64_t tile = at / width, in = at % width;
      const int64_t count = std::min(piece.end - at, width - in);
      const int64_t row = tile * kTileRows;
      run(Block{
          row, std::min(kTileRows, rows - row), {share.begin + in, share.begin + in + count}});
      at += count;
    }
  }
}

}  // namespace tessera::runtime
