// SPDX-License-Identifier: Apache-2.0
#include "engine/token_drawer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/logprobs.h"

namespace tessera::engine {
namespace {

bool Contains(const std::vector<TokenId>& ids, TokenId id) {
  return std::ranges::find(ids, id) != ids.end();
}

bool Ends(const StopParams& stop, TokenId id) {
  return Contains(stop.eos_ids, id) || Contains(stop.stop_ids, id);
}

}  // namespace

Result<Drawn> TokenDrawer::Draw(const Sequence& sequence, const Logits& logits) {
  const Request& request = sequence.request;
  const StopParams& stop = request.stop;
  banned_.clear();
  if (sequence.generated() < stop.min_tokens) {
    banned_.insert(banned_.end(), stop.eos_ids.begin(), stop.eos_ids.end());
    banned_.insert(banned_.end(), stop.stop_ids.begin(), stop.stop_ids.end());
  }
  if (sequence.beams != nullptr) return Report(sequence, logits);
  TESSERA_ASSIGN_OR_RETURN(const TokenId token,
                           sampler_.Sample(logits, request.sampling, sequence.history, banned_,
                                           static_cast<uint64_t>(sequence.generated())));
  TokenOutput output{.id = token, .is_end = Ends(stop, token), .logprobs = {}};
  if (request.top_logprobs >= 0)
    output.logprobs = ComputeLogprobs(logits.values, token, request.top_logprobs);
  return output;
}

Result<BeamReport> TokenDrawer::Report(const Sequence& sequence, const Logits& logits) {
  const Request& request = sequence.request;
  TESSERA_ASSIGN_OR_RETURN(const std::span<const double> adjusted,
                           sampler_.Adjust(logits, request.sampling, sequence.history, banned_));
  const double log_sum = LogSumExp(adjusted);
  BeamReport report;
  for (const TokenId id : GreatestIds(adjusted, sequence.beams->search.wanted())) {
    const double logprob = adjusted[static_cast<size_t>(id)] - log_sum;
    if (!std::isfinite(logprob)) break;  // Banned, as all behind it.
    BeamToken token{logprob, {.id = id, .is_end = Ends(request.stop, id), .logprobs = {}}};
    if (request.top_logprobs >= 0)
      token.output.logprobs = ComputeLogprobs(logits.values, id, request.top_logprobs);
    report.push_back(std::move(token));
  }
  return report;
}

}  // namespace tessera::engine
