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

int64_t Units(const BoundWeight& weight) {
  return (kernels::GroupCount(weight.n) + kUnitGroups - 1) / kUnitGroups;
}

}  // namespace

void RunOp(Executor& ex, const bundle::HeadStep& step, Worker* worker) {
  const std::span<const int32_t> wanted = ex.rows().logit_rows();
  if (wanted.empty()) return;
  const BoundWeight& weight = ex.weight(step.weight);
  const Activations in = ex.NormInput(step.in, step.norm, weight.input, wanted, worker);
  if (ex.rows().wants_hidden())
    ex.NormFloats(step.in, step.norm, wanted, ex.hidden_data(), *worker);
  const int64_t vocabulary = ex.dims().vocab_size;
  const int64_t units = Units(weight);
  const auto share_of = [&](int owner) { return worker->ShareOf(owner, units); };
  ForEachBlock(ex, worker, std::ssize(wanted), units, share_of, [&](const Block& b) {
    const int64_t begin = b.units.begin * kUnitGroups;
    const int64_t end = std::min(b.units.end * kUnitGroups, kernels::GroupCount(weight.n));
    const int64_t first = begin * kernels::kGroupRows;
    ex.Matmul(weight, in.From(b.row), b.rows, begin, end,
              ex.logits_data() + b.row * vocabulary + first, vocabulary, worker);
    const int64_t count = std::min(end * kernels::kGroupRows, vocabulary) - first;
    for (int64_t row = b.row; row < b.row + b.rows; ++row)
      ex.kernels().block_max(ex.logits_data() + row * vocabulary + first, count,
                             ex.block_max_data() + row * kernels::LogitBlocks(vocabulary) +
                                 first / kernels::kLogitBlock);
  });
}

}  // namespace tessera::runtime
