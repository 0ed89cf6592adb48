// SPDX-License-Identifier: Apache-2.0
#include "runtime/shared_collective.h"

#include <algorithm>
#include <numeric>

namespace tessera::runtime {

uint64_t SegmentBytes(const bundle::RankProgram& program, int64_t rows, bool all_ranks) {
  int64_t floats = 0;
  for (size_t i = 0; i < program.slices.size(); ++i) {
    const std::vector<int64_t>& counts = program.slices[i].segments;
    if (counts.empty()) continue;
    const int64_t segments = all_ranks ? std::accumulate(counts.begin(), counts.end(), int64_t{0})
                                       : counts[static_cast<size_t>(program.rank)];
    floats = std::max(floats, segments * rows * program.program.weights[i].n);
  }
  return static_cast<uint64_t>(floats) * sizeof(float);
}

Result<std::unique_ptr<SharedCollective>> SharedCollective::Make(
    const std::vector<bundle::RankProgram>& ranks, int64_t max_rows, ThreadPool* pool) {
  std::unique_ptr<SharedCollective> collective(new SharedCollective(pool));
  for (const bundle::RankProgram& rank : ranks) {
    TESSERA_ASSIGN_OR_RETURN(Mapping memory,
                             Mapping::Reserve(SegmentBytes(rank, max_rows, false), true));
    collective->memory_.push_back(std::move(memory));
  }
  return collective;
}

}  // namespace tessera::runtime
