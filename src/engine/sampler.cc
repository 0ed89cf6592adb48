// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/random.h"
#include "engine/sampler_dry.h"
#include "engine/sampler_xtc.h"

namespace tessera::engine {
namespace {

bool HasCountPenalties(const SamplingParams& params) {
  return params.repetition_penalty != 1.0 || params.frequency_penalty != 0.0 ||
         params.presence_penalty != 0.0;
}

void ApplyBiasAndBans(const SamplingParams& params, std::span<const TokenId> banned,
                      LogitRow* row) {
  for (const auto& [id, bias] : params.logit_bias) row->Set(id, row->At(id) + bias);
  for (const TokenId id : banned) row->Set(id, LogitRow::kMinusInfinity);
}

void ApplyPenalties(const SamplingParams& params, const TokenHistory& history, LogitRow* row) {
  if (IsOn(params.dry))
    for (const auto& [id, penalty] : DryPenalties(params.dry, history.tokens()))
      row->Set(id, row->At(id) - penalty);
  if (!HasCountPenalties(params)) return;
  for (const auto& [id, counts] : history.counts()) {
    double value = row->At(id);
    if (params.repetition_penalty != 1.0)
      value = value > 0 ? value / params.repetition_penalty : value * params.repetition_penalty;
    if (counts.generated > 0)
      value -= params.frequency_penalty * static_cast<double>(counts.generated) +
               params.presence_penalty;
    row->Set(id, value);
  }
}

/// 1 / temperature; a temperature too small to invert is as good as 1e-300.
double ScaleOf(const SamplingParams& params) {
  return 1 / std::max(params.temperature, 1e-300);
}

double MaxLogit(std::span<const Candidate> candidates) {
  double max = LogitRow::kMinusInfinity;
  for (const Candidate& candidate : candidates) max = std::max(max, candidate.x);
  return max;
}

/// Fills p with the softmax of x.
void Softmax(std::vector<Candidate>* candidates) {
  const double max = MaxLogit(*candidates);
  double sum = 0;
  for (Candidate& candidate : *candidates) sum += candidate.p = std::exp(candidate.x - max);
  for (Candidate& candidate : *candidates) candidate.p /= sum;
}

void KeepMinP(double min_p, std::vector<Candidate>* candidates) {
  const double max = MaxLogit(*candidates);
  // The factor lets a value that is equal up to rounding stay.
  const double threshold = min_p * (1 - 1e-12);
  std::erase_if(*candidates, [&](const Candidate& c) { return std::exp(c.x - max) < threshold; });
}

/// Keeps the ids whose surprise is closest to the entropy, until their mass reaches typical_p.
void KeepTypical(double typical_p, std::vector<Candidate>* candidates,
                 std::vector<Candidate>* by_distance) {
  Softmax(candidates);
  double entropy = 0;
  for (const Candidate& c : *candidates)
    if (c.p > 0) entropy -= c.p * std::log(c.p);
  const auto distance = [entropy](const Candidate& c) {
    return c.p > 0 ? std::abs(-std::log(c.p) - entropy) : std::numeric_limits<double>::infinity();
  };
  *by_distance = *candidates;
  for (Candidate& c : *by_distance) c.x = distance(c);
  std::ranges::sort(*by_distance, [](const Candidate& a, const Candidate& b) {
    return a.x != b.x ? a.x < b.x : a.id < b.id;
  });
  double mass = 0;
  double limit = by_distance->back().x;
  for (const Candidate& c : *by_distance) {
    mass += c.p;
    if (mass >= typical_p) {
      limit = c.x;
      break;
    }
  }
  std::erase_if(*candidates, [&](const Candidate& c) { return distance(c) > limit; });
}

void KeepTopK(int64_t top_k, std::vector<Candidate>* candidates, std::vector<Candidate>* scratch) {
  if (top_k <= 0 || static_cast<size_t>(top_k) >= candidates->size()) return;
  *scratch = *candidates;
  const auto kth = scratch->begin() + (top_k - 1);
  std::ranges::nth_element(*scratch, kth, std::greater<>(), &Candidate::x);
  const double least = kth->x;
  std::erase_if(*candidates, [&](const Candidate& c) { return c.x < least; });
}

/// Requires p.
void KeepTopP(double top_p, std::vector<Candidate>* candidates, std::vector<Candidate>* sorted) {
  *sorted = *candidates;
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.p != b.p ? a.p > b.p : a.id < b.id;
  };
  // The nucleus is usually tiny: sort a growing head instead of the whole vocabulary.
  double mass = 0;
  size_t done = 0;
  size_t head = 0;
  for (size_t step = 64; done == 0 && head < sorted->size(); step *= 4) {
    const size_t from = head;
    head = std::min(head + step, sorted->size());
    std::ranges::partial_sort(sorted->begin() + static_cast<ptrdiff_t>(from),
                              sorted->begin() + static_cast<ptrdiff_t>(head), sorted->end(),
                              before);
    for (size_t i = from; i < head && done == 0; ++i) {
      mass += (*sorted)[i].p;
      if (mass >= top_p) done = i + 1;
    }
  }
  if (done == 0) return;  // Rounding kept the whole mass below p: all stay.
  const Candidate last = (*sorted)[done - 1];
  std::erase_if(*candidates, [&](const Candidate& c) { return before(last, c); });
}

bool FiltersBeforeTopP(const SamplingParams& params) {
  return params.min_p > 0 || params.typical_p < 1 || params.top_k > 0;
}

/// Whether every id may be drawn.
bool IsPlainDraw(const SamplingParams& params) {
  return params.top_p >= 1 && !FiltersBeforeTopP(params) && params.xtc.probability <= 0;
}

}  // namespace

TokenHistory::TokenHistory(const SamplingParams& params, std::span<const TokenId> prompt)
    : is_used_(HasCountPenalties(params)), has_dry_(IsOn(params.dry)) {
  if (has_dry_) tokens_.assign(prompt.begin(), prompt.end());
  if (params.repetition_penalty == 1.0) return;
  for (const TokenId id : prompt) counts_[id].in_prompt = true;
}

void TokenHistory::Push(TokenId id) {
  if (is_used_) ++counts_[id].generated;
  if (has_dry_) tokens_.push_back(id);
}

Result<TokenId> Sampler::Prepare(const Logits& logits, const SamplingParams& params,
                                 const TokenHistory& history, std::span<const TokenId> banned,
                                 std::span<const uint32_t> allowed) {
  TESSERA_RETURN_IF_ERROR(row_.Reset(logits, allowed));
  ApplyBiasAndBans(params, banned, &row_);
  ApplyPenalties(params, history, &row_);
  const TokenId best = row_.FindBest();
  if (best < 0)
    return Fail(InvalidArgument("penalties, logit_bias and min_tokens leave no token possible"));
  return best;
}

void Sampler::CollectNucleus(double top_p, double scale) {
  const double total = row_.Mass(scale);
  for (const double depth : {8.0, 20.0, std::numeric_limits<double>::infinity()}) {
    candidates_.clear();
    row_.Collect(row_.max() - depth / scale, scale, &candidates_);
    double mass = 0;
    for (Candidate& candidate : candidates_) mass += candidate.p = std::exp(candidate.x) / total;
    if (mass >= top_p) return;
  }
}

void Sampler::CollectCandidates(const SamplingParams& params, double scale) {
  candidates_.clear();
  double least = LogitRow::kMinusInfinity;
  // Some rounding below the bounds: the filters decide.
  if (params.min_p > 0) least = row_.max() + (std::log(params.min_p) - 1e-9) / scale;
  if (params.top_k > 0 && params.typical_p >= 1) {
    const double kth = row_.LeastOf(params.top_k);
    least = std::max(least, kth - 1e-9 * (std::abs(kth) + std::abs(row_.max())));
  }
  row_.Collect(least, scale, &candidates_);
}

void Sampler::Filter(const SamplingParams& params) {
  if (params.min_p > 0) KeepMinP(params.min_p, &candidates_);
  if (params.typical_p < 1) KeepTypical(params.typical_p, &candidates_, &sorted_);
  KeepTopK(params.top_k, &candidates_, &sorted_);
  if (params.top_p >= 1) return;
  Softmax(&candidates_);
  KeepTopP(params.top_p, &candidates_, &sorted_);
}

Result<std::span<const Candidate>> Sampler::Distribution(
    const Logits& logits, const SamplingParams& params, const TokenHistory& history,
    std::span<const TokenId> banned, uint64_t position, std::span<const uint32_t> allowed) {
  TESSERA_ASSIGN_OR_RETURN(const TokenId best, Prepare(logits, params, history, banned, allowed));
  if (params.temperature == 0) {
    candidates_.assign(1, {best, 0, 1.0});
    return candidates_;
  }
  const double scale = ScaleOf(params);
  if (params.top_p < 1 && !FiltersBeforeTopP(params)) {
    CollectNucleus(params.top_p, scale);
    KeepTopP(params.top_p, &candidates_, &sorted_);
  } else {
    CollectCandidates(params, scale);
    Filter(params);
  }
  Softmax(&candidates_);
  if (params.xtc.probability > 0 && XtcStrikes(params, position))
    ExcludeTopChoices(params.xtc.threshold, &candidates_);
  std::erase_if(candidates_, [](const Candidate& c) { return c.p <= 0; });
  TESSERA_CHECK(!candidates_.empty());
  return candidates_;
}

Result<TokenId> Sampler::Sample(const Logits& logits, const SamplingParams& params,
                                const TokenHistory& history, std::span<const TokenId> banned,
                                uint64_t position, std::span<const uint32_t> allowed) {
  if (params.temperature == 0) return Prepare(logits, params, history, banned, allowed);
  const double u = UniformAt(params.seed, params.stream, position);
  if (IsPlainDraw(params)) {
    // Every id may be drawn: no list of candidates is needed.
    TESSERA_RETURN_IF_ERROR(StatusOf(Prepare(logits, params, history, banned, allowed)));
    const double scale = ScaleOf(params);
    return row_.FindMass(u * row_.Mass(scale), scale);
  }
  TESSERA_ASSIGN_OR_RETURN(const std::span<const Candidate> kept,
                           Distribution(logits, params, history, banned, position, allowed));
  double mass = 0;
  for (const Candidate& candidate : kept) {
    mass += candidate.p;
    if (u < mass) return candidate.id;
  }
  return kept.back().id;  // The sum may round to just below 1.
}

Result<std::span<const double>> Sampler::Adjust(const Logits& logits, const SamplingParams& params,
                                                const TokenHistory& history,
                                                std::span<const TokenId> banned) {
  TESSERA_RETURN_IF_ERROR(StatusOf(Prepare(logits, params, history, banned, {})));
  row_.CopyTo(&adjusted_);
  return adjusted_;
}

}  // namespace tessera::engine
