// SPDX-License-Identifier: Apache-2.0
//
// Shares groups of vocabulary entries, for the rows that want logits only. The maximum of every 32
// is taken while they are in the cache; samplers start from it.
#include <algorithm>

#include "kernels/pack.h"
#include "runtime/steps/blocks.h"
#include "runtime/steps/steps.h"

namespace tessera::runtime {
namespace {

// Blocks of columns consist of whole blocks of logits.
static_assert(kUnitGroups * kernels::kGroupRows % kernels::kLogitBlock == 0);

int64_t Units(int64_t columns) {
  return (kernels::GroupCount(columns) + kUnitGroups - 1) / kUnitGroups;
}

}  // namespace

void RunOp(Executor& ex, const bundle::HeadStep& step, Worker* worker) {
  const std::span<const int32_t> wanted = ex.rows().logit_rows();
  if (wanted.empty()) return;
  const BoundWeight& weight = ex.weight(step.weight);
  const Activations in = ex.NormInput(step.in, step.norm, {step.weight}, wanted, worker);
  if (ex.rows().wants_hidden())
    ex.NormFloats(step.in, step.norm, wanted, ex.hidden_data(), *worker);
  const int64_t vocabulary = ex.dims().vocab_size;
  const bundle::Interval own = ex.rank().vocabulary;  // In whole blocks of logits.
  const int64_t first_group = ex.rank().head_row / kernels::kGroupRows;
  const int64_t units = Units(own.size());
  const auto share_of = [&](int owner) { return worker->ShareOf(owner, units); };
  ForEachBlock(ex, worker, std::ssize(wanted), units, share_of, [&](const Block& b) {
    const int64_t begin = b.units.begin * kUnitGroups;
    const int64_t end = std::min(b.units.end * kUnitGroups, kernels::GroupCount(own.size()));
    const int64_t first = own.begin + begin * kernels::kGroupRows;
    ex.Matmul(weight, in.From(b.row), b.rows, first_group + begin, first_group + end,
              ex.logits_data() + b.row * vocabulary + first, vocabulary, worker);
    const int64_t count = std::min(own.begin + end * kernels::kGroupRows, own.end) - first;
    for (int64_t row = b.row; row < b.row + b.rows; ++row)
      ex.kernels().block_max(ex.logits_data() + row * vocabulary + first, count,
                             ex.block_max_data() + row * kernels::LogitBlocks(vocabulary) +
                                 first / kernels::kLogitBlock);
  });
  if (ex.collective() == nullptr) return;
  const bundle::RankProgram& rank = ex.rank();
  ex.collective()->Gather({ex.logits_data(), std::ssize(wanted), vocabulary, rank.logit_begins},
                          worker->pool_index);
  ex.collective()->Gather({ex.block_max_data(), std::ssize(wanted),
                           kernels::LogitBlocks(vocabulary), rank.block_begins},
                          worker->pool_index);
}

}  // namespace tessera::runtime
