// SPDX-License-Identifier: Apache-2.0
//
// Shares groups of eight vocabulary entries, for the rows that want logits only.
#include <algorithm>

#include "kernels/pack.h"
#include "runtime/limits.h"
#include "runtime/steps/steps.h"

namespace tessera::runtime {

void RunOp(Executor& ex, const bundle::HeadStep& step, Worker* worker) {
  const std::span<const int32_t> wanted = ex.rows().logit_rows();
  if (wanted.empty()) return;
  const BoundWeight& weight = ex.weight(step.weight);
  const Activations in = ex.NormInput(step.in, step.norm, weight.quantised_rows, wanted, worker);
  const Worker::Range share = worker->Share(kernels::GroupCount(weight.n));
  const int64_t vocabulary = ex.dims().vocab_size;
  const auto rows = std::ssize(wanted);
  for (int64_t row = 0; row < rows; row += kTileRows)
    ex.Matmul(weight, in.FromRow(row), std::min(kTileRows, rows - row), share.begin, share.end,
              ex.logits_data() + row * vocabulary + share.begin * kernels::kGroupRows, vocabulary,
              worker);
}

}  // namespace tessera::runtime
