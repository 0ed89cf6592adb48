// SPDX-License-Identifier: Apache-2.0
#include "engine/token_drawer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
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

std::span<const uint32_t> TokenDrawer::Allowed(const Sequence& sequence) {
  if (sequence.mask == nullptr) return {};
  const std::span<const uint32_t> mask = sequence.mask->mask();
  if (!sequence.mask->next().may_end) return mask;
  allowed_.assign(mask.begin(), mask.end());
  // Before min_tokens the bans take these out again.
  const StopParams& stop = sequence.request.stop;
  for (const std::vector<TokenId>* ids : {&stop.eos_ids, &stop.stop_ids})
    for (const TokenId id : *ids) allowed_[static_cast<size_t>(id / 32)] |= 1u << (id % 32);
  return allowed_;
}

Result<Drawn> TokenDrawer::Draw(const Sequence& sequence, std::span<const Logits> rows) {
  TESSERA_CHECK(rows.size() == sequence.drafts.size() + 1);
  const int64_t generated = sequence.generated();
  if (sequence.beams != nullptr) {
    Ban(sequence.request.stop, generated);
    return Report(sequence, rows.front());
  }
  std::vector<TokenOutput> tokens;
  TESSERA_ASSIGN_OR_RETURN(
      TokenOutput first,
      DrawOne(sequence.request, {sequence.history, generated, Allowed(sequence)}, rows.front()));
  tokens.push_back(std::move(first));
  if (sequence.drafts.empty()) return tokens;
  TESSERA_CHECK(sequence.mask == nullptr);  // Its next mask is not there yet.
  TokenHistory history = sequence.history;
  for (size_t i = 0; i < sequence.drafts.size(); ++i) {
    if (tokens.back().is_end || tokens.back().id != sequence.drafts[i]) break;
    history.Push(tokens.back().id);
    TESSERA_ASSIGN_OR_RETURN(
        TokenOutput next,
        DrawOne(sequence.request, {history, generated + static_cast<int64_t>(tokens.size()), {}},
                rows[i + 1]));
    tokens.push_back(std::move(next));
  }
  return tokens;
}

void TokenDrawer::Ban(const StopParams& stop, int64_t generated) {
  banned_.clear();
  if (generated >= stop.min_tokens) return;
  banned_.insert(banned_.end(), stop.eos_ids.begin(), stop.eos_ids.end());
  banned_.insert(banned_.end(), stop.stop_ids.begin(), stop.stop_ids.end());
}

Result<TokenOutput> TokenDrawer::DrawOne(const Request& request, const Place& place,
                                         const Logits& logits) {
  const StopParams& stop = request.stop;
  Ban(stop, place.generated);
  TESSERA_ASSIGN_OR_RETURN(const TokenId token,
                           sampler_.Sample(logits, request.sampling, place.history, banned_,
                                           static_cast<uint64_t>(place.generated), place.allowed));
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
