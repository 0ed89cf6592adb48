// SPDX-License-Identifier: Apache-2.0
//
// Shares groups of vocabulary entries, for the rows that want logits only.
#include <algorithm>

#include "kernels/pack.h"
#include "runtime/steps/blocks.h"
#include "runtime/steps/steps.h"

namespace tessera::runtime {
namespace {

int64_t Units(const BoundWeight& weight) {
  return (kernels::GroupCount(weight.n) + kUnitGroups - 1) / kUnitGroups;
}

}  // namespace

void RunOp(Executor& ex, const bundle::HeadStep& step, Worker* worker) {
  const std::span<const int32_t> wanted = ex.rows().logit_rows();
  if (wanted.empty()) return;
  const BoundWeight& weight = ex.weight(step.weight);
  const Activations in = ex.NormInput(step.in, step.norm, weight.input, wanted, worker);
  const int64_t vocabulary = ex.dims().vocab_size;
  const int64_t units = Units(weight);
  const auto share_of = [&](int owner) { return worker->ShareOf(owner, units); };
  ForEachBlock(ex, worker, std::ssize(wanted), units, share_of, [&](const Block& b) {
    const int64_t begin = b.units.begin * kUnitGroups;
    const int64_t end = std::min(b.units.end * kUnitGroups, kernels::GroupCount(weight.n));
    ex.Matmul(weight, in.From(b.row), b.rows, begin, end,
              ex.logits_data() + b.row * vocabulary + begin * kernels::kGroupRows, vocabulary,
              worker);
  });
}

}  // namespace tessera::runtime
