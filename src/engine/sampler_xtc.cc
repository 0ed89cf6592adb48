// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler_xtc.h"

#include <algorithm>

#include "base/random.h"

namespace tessera::engine {

bool XtcStrikes(const SamplingParams& params, uint64_t position) {
  // A stream that no choice has: they are counted up from 0.
  return UniformAt(params.seed, ~params.stream, position) < params.xtc.probability;
}

void ExcludeTopChoices(double threshold, std::vector<Candidate>* candidates) {
  const Candidate* least = nullptr;
  int64_t likely = 0;
  for (const Candidate& candidate : *candidates) {
    if (candidate.p < threshold) continue;
    ++likely;
    if (least == nullptr || candidate.p <= least->p) least = &candidate;
  }
  if (likely < 2) return;
  const TokenId kept = least->id;
  std::erase_if(*candidates, [&](const Candidate& c) { return c.p >= threshold && c.id != kept; });
  double sum = 0;
  for (const Candidate& candidate : *candidates) sum += candidate.p;
  for (Candidate& candidate : *candidates) candidate.p /= sum;
}

}  // namespace tessera::engine
