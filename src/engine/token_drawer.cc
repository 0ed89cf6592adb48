// SPDX-License-Identifier: Apache-2.0
#include "engine/token_drawer.h"

#include <algorithm>
#include <utility>

#include "engine/logprobs.h"

namespace tessera::engine {
namespace {

bool Contains(const std::vector<TokenId>& ids, TokenId id) {
  return std::ranges::find(ids, id) != ids.end();
}

}  // namespace

Result<TokenOutput> TokenDrawer::Draw(const Sequence& sequence, const Logits& logits) {
  const Request& request = sequence.request;
  const StopParams& stop = request.stop;
  banned_.clear();
  if (sequence.generated() < stop.min_tokens) {
    banned_.insert(banned_.end(), stop.eos_ids.begin(), stop.eos_ids.end());
    banned_.insert(banned_.end(), stop.stop_ids.begin(), stop.stop_ids.end());
  }
  TESSERA_ASSIGN_OR_RETURN(const TokenId token,
                           sampler_.Sample(logits, request.sampling, sequence.history, banned_,
                                           static_cast<uint64_t>(sequence.generated())));
  TokenOutput output{.id = token,
                     .is_end = Contains(stop.eos_ids, token) || Contains(stop.stop_ids, token),
                     .logprobs = {}};
  if (request.top_logprobs >= 0)
    output.logprobs = ComputeLogprobs(logits.values, token, request.top_logprobs);
  return output;
}

}  // namespace tessera::engine
