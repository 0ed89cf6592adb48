// SPDX-License-Identifier: Apache-2.0
#include "runtime/rank_group.h"

#include "base/check.h"
#include "runtime/shared_collective.h"
#include "runtime/transport_collective.h"

namespace tessera::runtime {
namespace {

/// Whether one query head's columns are whole blocks in every buffer that consists of blocks.
bool MaySplitHeads(const bundle::Program& program) {
  for (const bundle::Buffer& buffer : program.buffers)
    if (buffer.kind != bundle::BufferKind::kFloat && program.dims.head_dim % kernels::kBlock != 0)
      return false;
  return true;
}

}  // namespace

Result<std::unique_ptr<RankGroup>> RankGroup::Make(const bundle::Bundle& bundle, KvMemory* kv,
                                                   const Isa& isa, int64_t max_rows,
                                                   ThreadPool* pool, Transport* transport,
                                                   std::function<void()> after_segment) {
  std::unique_ptr<RankGroup> group(new RankGroup(pool));
  group->after_segment_ = std::move(after_segment);
  const auto ranks = static_cast<int>(bundle.ranks.size());
  TESSERA_CHECK(ranks >= 1 && pool->size() % ranks == 0);
  group->workers_ = pool->size() / ranks;
  group->may_split_heads_ = MaySplitHeads(bundle.program);
  group->is_apart_ = transport != nullptr;
  if (transport != nullptr) {
    TESSERA_CHECK(ranks == 1);
    TESSERA_ASSIGN_OR_RETURN(
        group->collective_,
        TransportCollective::Make(bundle.ranks.front(), max_rows, pool, transport));
  } else if (ranks > 1) {
    TESSERA_ASSIGN_OR_RETURN(group->collective_,
                             SharedCollective::Make(bundle.ranks, max_rows, pool));
  }
  for (size_t rank = 0; rank < bundle.ranks.size(); ++rank)
    TESSERA_RETURN_IF_ERROR(group->AddMember(bundle, rank, kv, isa, max_rows));
  // Made once: a std::function made for every step might allocate.
  group->run_ = [self = group.get()](int worker) {
    const int member = worker / self->workers_;
    self->members_[static_cast<size_t>(member)].executor->RunWorker(worker % self->workers_);
  };
  return group;
}

Status RankGroup::AddMember(const bundle::Bundle& bundle, size_t rank, KvMemory* kv, const Isa& isa,
                            int64_t max_rows) {
  const bundle::RankProgram& part = bundle.ranks[rank];
  TESSERA_ASSIGN_OR_RETURN(std::vector<BoundWeight> weights,
                           BindWeights(part.program, bundle.archive, isa, &splats_));
  ExecutorPlace place;
  place.collective = collective_.get();
  place.lead = members_.empty() ? nullptr : members_.front().executor.get();
  place.first_worker = static_cast<int>(rank) * workers_;
  place.workers = workers_;
  place.first_kv_head = is_apart_ ? 0 : part.first_kv_head;
  place.after_segment = after_segment_;
  Member member;
  TESSERA_ASSIGN_OR_RETURN(
      member.executor, Executor::Make(part, std::move(weights), kv, kernels::SelectRowKernels(isa),
                                      max_rows, pool_, place));
  // A strip would leave the rank in the middle: its sums are others' as well.
  const StripPolicy strips = part.ranks > 1 ? StripPolicy{} : StripPolicyOf(part.program);
  member.rows = std::make_unique<StepRows>(part.program.dims, max_rows, kv->pages(), strips);
  members_.push_back(std::move(member));
  return {};
}

Status RankGroup::Fill(std::span<const Chunk> chunks) {
  for (const Member& member : members_)
    TESSERA_RETURN_IF_ERROR(member.rows->Fill(chunks, workers_, may_split_heads_));
  return {};
}

void RankGroup::Run() {
  if (members_.size() == 1) return members_.front().executor->Run(*members_.front().rows);
  for (const Member& member : members_) member.executor->Begin(*member.rows);
  pool_->Run(run_);
  for (const Member& member : members_) member.executor->End();
}

WorkCounters RankGroup::counters() const {
  WorkCounters sum;
  for (const Member& member : members_) {
    const WorkCounters part = member.executor->counters();
    sum.weight_bytes += part.weight_bytes;
    sum.kv_bytes += part.kv_bytes;
    sum.matmul_macs += part.matmul_macs;
    sum.attention_macs += part.attention_macs;
  }
  return sum;
}

uint64_t RankGroup::scratch_bytes() const {
  uint64_t bytes = 0;
  for (const Member& member : members_) bytes += member.executor->scratch_bytes();
  return bytes;
}

std::vector<std::span<const std::byte>> RankGroup::scratch() const {
  std::vector<std::span<const std::byte>> all;
  for (const Member& member : members_) all.push_back(member.executor->scratch());
  return all;
}

}  // namespace tessera::runtime
