// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport_collective.h"

#include <algorithm>

#include "runtime/limits.h"
#include "runtime/shared_collective.h"

namespace tessera::runtime {

Result<std::unique_ptr<TransportCollective>> TransportCollective::Make(
    const bundle::RankProgram& program, int64_t max_rows, ThreadPool* pool, Transport* transport) {
  std::unique_ptr<TransportCollective> collective(new TransportCollective(pool, transport));
  TESSERA_ASSIGN_OR_RETURN(collective->memory_,
                           Mapping::Reserve(SegmentBytes(program, max_rows, true), true));
  collective->begins_.reserve(static_cast<size_t>(program.ranks) + 1);
  return collective;
}

bool TransportCollective::IsShared(const SegmentSet& set) const {
  return set.Before(std::ssize(set.counts)) * set.floats > kWholeExchangeFloats;
}

int64_t TransportCollective::ShareBegin(const SegmentSet& set, int64_t rank) const {
  constexpr int64_t kLine = 16;  // Floats of a cache line.
  const int64_t lines = (set.floats + kLine - 1) / kLine;
  return std::min(lines * rank / transport_->ranks() * kLine, set.floats);
}

void TransportCollective::BeginsOfShares(const SegmentSet& set) {
  begins_.clear();
  for (int64_t rank = 0; rank <= transport_->ranks(); ++rank)
    begins_.push_back(ShareBegin(set, rank));
}

bundle::Interval TransportCollective::Own(const SegmentSet& set) const {
  if (!IsShared(set)) return {0, set.floats};
  const int64_t rank = transport_->rank();
  return {ShareBegin(set, rank), ShareBegin(set, rank + 1)};
}

void TransportCollective::Exchange(const SegmentSet& set, int worker) {
  pool_->Barrier(worker);
  if (worker == 0) {
    auto* data = reinterpret_cast<float*>(memory_.data());
    if (IsShared(set)) {
      BeginsOfShares(set);
      transport_->Scatter(data, set, begins_);
    } else {
      begins_.clear();
      for (int64_t rank = 0; rank <= transport_->ranks(); ++rank)
        begins_.push_back(set.Before(rank) * set.floats);
      transport_->AllGather(data, begins_);
    }
  }
  pool_->Barrier(worker);
}

void TransportCollective::Share(float* sums, const SegmentSet& set, int worker) {
  if (!IsShared(set)) return;
  pool_->Barrier(worker);
  if (worker != 0) return;
  BeginsOfShares(set);
  transport_->AllGather(sums, begins_);
}

void TransportCollective::Gather(const ColumnsOf& matrix, int worker) {
  pool_->Barrier(worker);
  if (worker == 0) transport_->GatherColumns(matrix);
}

}  // namespace tessera::runtime
