// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport_collective.h"

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

void TransportCollective::Exchange(const SegmentSet& set, int worker) {
  pool_->Barrier(worker);
  if (worker == 0) {
    begins_.clear();
    int64_t begin = 0;
    for (const int64_t count : set.counts) {
      begins_.push_back(begin);
      begin += count * set.floats;
    }
    begins_.push_back(begin);
    transport_->AllGather(reinterpret_cast<float*>(memory_.data()), begins_);
  }
  pool_->Barrier(worker);
}

void TransportCollective::Gather(const ColumnsOf& matrix, int worker) {
  pool_->Barrier(worker);
  if (worker == 0) transport_->GatherColumns(matrix);
}

}  // namespace tessera::runtime
