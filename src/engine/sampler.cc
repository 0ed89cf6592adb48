// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/random.h"
#include "engine/sampler_dry.h"
#include "engine/sampler_xtc.h"

namespace tessera::engine {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

bool HasCountPenalties(const SamplingParams& params) {
  return params.repetition_penalty != 1.0 || params.frequency_penalty != 0.0 ||
         params.presence_penalty != 0.0;
}

bool HasPenalties(const SamplingParams& params) {
  return HasCountPenalties(params) || IsOn(params.dry);
}

void ApplyBiasAndBans(const SamplingParams& params, std::span<const TokenId> banned,
                      std::vector<double>* x) {
  for (const auto& [id, bias] : params.logit_bias) (*x)[static_cast<size_t>(id)] += bias;
  for (const TokenId id : banned) (*x)[static_cast<size_t>(id)] = kMinusInfinity;
}

void ApplyPenalties(const SamplingParams& params, const TokenHistory& history,
                    std::vector<double>* x) {
  if (IsOn(params.dry)) ApplyDry(params.dry, history.tokens(), x);
  if (!HasCountPenalties(params)) return;
  for (const auto& [id, counts] : history.counts()) {
    double& value = (*x)[static_cast<size_t>(id)];
    if (params.repetition_penalty != 1.0)
      value = value > 0 ? value / params.repetition_penalty : value * params.repetition_penalty;
    if (counts.generated > 0)
      value -= params.frequency_penalty * static_cast<double>(counts.generated) +
               params.presence_penalty;
  }
}

double MaxLogit(std::span<const Candidate> candidates) {
  double max = kMinusInfinity;
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

void KeepTopP(double top_p, std::vector<Candidate>* candidates, std::vector<Candidate>* sorted) {
  Softmax(candidates);
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

/// Order of floats as order of integers: of two numbers the greater has the greater key, +NaN lies
/// above +infinity and -NaN below -infinity. Unlike float comparisons, whose reductions depend on
/// the order where NaN occurs, a maximum of integers becomes vector code.
int32_t OrderKey(float value) {
  const auto bits = std::bit_cast<int32_t>(value);
  return bits ^ ((bits >> 31) & std::numeric_limits<int32_t>::max());
}

float FromOrderKey(int32_t key) {
  return std::bit_cast<float>(key ^ ((key >> 31) & std::numeric_limits<int32_t>::max()));
}

struct KeyRange {
  int32_t min = std::numeric_limits<int32_t>::max();
  int32_t max = std::numeric_limits<int32_t>::min();
};

KeyRange KeysOf(std::span<const float> logits) {
  KeyRange range;
  for (const float value : logits) {
    const int32_t key = OrderKey(value);
    range.min = key < range.min ? key : range.min;
    range.max = key > range.max ? key : range.max;
  }
  return range;
}

/// The id of the greatest logit, the lowest of equals.
Result<TokenId> BestOf(std::span<const float> logits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr size_t kBlock = 1024;  // Looked through once more where the first maximum is.
  KeyRange all;
  float best = -kInfinity;
  size_t best_block = 0;
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const KeyRange block = KeysOf(logits.subspan(begin, std::min(kBlock, logits.size() - begin)));
    all.min = std::min(all.min, block.min);
    all.max = std::max(all.max, block.max);
    const float max = FromOrderKey(block.max);  // As floats -0 and +0 are equals.
    if (max > best) {
      best = max;
      best_block = begin;
    }
  }
  if (all.max >= OrderKey(kInfinity) || all.min < OrderKey(-kInfinity))
    return Fail(Internal("the model produced logits that are not numbers"));
  if (all.max == OrderKey(-kInfinity))
    return Fail(Internal("the model left no token possible: all logits are -infinity"));
  const auto rest = logits.subspan(best_block);
  return static_cast<TokenId>(best_block) +
         static_cast<TokenId>(std::ranges::find(rest, best) - rest.begin());
}

bool IsPlainGreedy(const SamplingParams& params, std::span<const TokenId> banned) {
  return params.temperature == 0 && params.logit_bias.empty() && banned.empty() &&
         !HasPenalties(params);
}

/// Whether every id may be drawn, with nothing but the temperature between logits and odds.
bool IsPlainDraw(const SamplingParams& params, std::span<const TokenId> banned, size_t vocab) {
  const bool all_of_top_k = params.top_k <= 0 || static_cast<size_t>(params.top_k) >= vocab;
  return params.temperature != 0 && params.logit_bias.empty() && banned.empty() &&
         !HasPenalties(params) && params.min_p <= 0 && params.typical_p >= 1 && all_of_top_k &&
         params.top_p >= 1 && params.xtc.probability <= 0;
}

TokenId Argmax(std::span<const double> values) {
  const auto best = std::ranges::max_element(values);  // The first of equals.
  return static_cast<TokenId>(best - values.begin());
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

Result<std::span<const double>> Sampler::Adjust(std::span<const float> logits,
                                                const SamplingParams& params,
                                                const TokenHistory& history,
                                                std::span<const TokenId> banned) {
  TESSERA_RETURN_IF_ERROR(StatusOf(BestOf(logits)));
  x_.assign(logits.begin(), logits.end());
  ApplyBiasAndBans(params, banned, &x_);
  ApplyPenalties(params, history, &x_);
  if (x_[static_cast<size_t>(Argmax(x_))] == kMinusInfinity)
    return Fail(InvalidArgument("penalties, logit_bias and min_tokens leave no token possible"));
  return x_;
}

Result<std::span<const Candidate>> Sampler::Distribution(std::span<const float> logits,
                                                         const SamplingParams& params,
                                                         const TokenHistory& history,
                                                         std::span<const TokenId> banned,
                                                         uint64_t position) {
  TESSERA_RETURN_IF_ERROR(StatusOf(Adjust(logits, params, history, banned)));
  candidates_.clear();
  const TokenId best = Argmax(x_);
  const double max = x_[static_cast<size_t>(best)];
  if (params.temperature == 0) {
    candidates_.push_back({best, max, 1.0});
    return candidates_;
  }
  // What top_k will not keep need not be looked at, unless its mass counts.
  const double least = params.typical_p < 1 ? kMinusInfinity : LeastOfTopK(params.top_k);
  // Relative to the maximum, so that a tiny temperature cannot overflow to infinity.
  for (size_t id = 0; id < x_.size(); ++id)
    if (x_[id] != kMinusInfinity && x_[id] >= least)
      candidates_.push_back({static_cast<TokenId>(id), (x_[id] - max) / params.temperature, 0});
  if (params.min_p > 0) KeepMinP(params.min_p, &candidates_);
  if (params.typical_p < 1) KeepTypical(params.typical_p, &candidates_, &sorted_);
  KeepTopK(params.top_k, &candidates_, &sorted_);
  if (params.top_p < 1) KeepTopP(params.top_p, &candidates_, &sorted_);
  Softmax(&candidates_);
  if (params.xtc.probability > 0 && XtcStrikes(params, position))
    ExcludeTopChoices(params.xtc.threshold, &candidates_);
  std::erase_if(candidates_, [](const Candidate& c) { return c.p <= 0; });
  TESSERA_CHECK(!candidates_.empty());
  return candidates_;
}

double Sampler::LeastOfTopK(int64_t top_k) {
  const auto count = static_cast<size_t>(top_k);
  if (top_k <= 0 || count >= x_.size()) return kMinusInfinity;
  // A heap of the greatest so far, the least of them on top: few elements ever enter it.
  heap_.assign(x_.begin(), x_.begin() + static_cast<ptrdiff_t>(count));
  std::ranges::make_heap(heap_, std::greater<>());
  for (size_t id = count; id < x_.size(); ++id) {
    if (x_[id] <= heap_.front()) continue;
    std::ranges::pop_heap(heap_, std::greater<>());
    heap_.back() = x_[id];
    std::ranges::push_heap(heap_, std::greater<>());
  }
  // Values a rounding apart may become equals when the maximum is taken off; KeepTopK decides.
  const double least = heap_.front();
  const double max = *std::ranges::max_element(heap_);
  return least - 1e-9 * (std::abs(least) + std::abs(max));
}

Result<TokenId> Sampler::DrawFromAll(std::span<const float> logits, double temperature, double u) {
  TESSERA_ASSIGN_OR_RETURN(const TokenId best, BestOf(logits));
  const auto max = static_cast<double>(logits[static_cast<size_t>(best)]);
  x_.resize(logits.size());
  double sum = 0;
  for (size_t id = 0; id < x_.size(); ++id)
    sum += x_[id] = std::exp((static_cast<double>(logits[id]) - max) / temperature);
  double mass = 0;
  TokenId last = best;
  for (size_t id = 0; id < x_.size(); ++id) {
    const double p = x_[id] / sum;
    if (p <= 0) continue;
    mass += p;
    last = static_cast<TokenId>(id);
    if (u < mass) break;
  }
  return last;  // The sum may round to just below 1.
}

Result<TokenId> Sampler::Sample(std::span<const float> logits, const SamplingParams& params,
                                const TokenHistory& history, std::span<const TokenId> banned,
                                uint64_t position) {
  if (IsPlainGreedy(params, banned)) return BestOf(logits);
  const double u = UniformAt(params.seed, params.stream, position);
  if (IsPlainDraw(params, banned, logits.size())) return DrawFromAll(logits, params.temperature, u);
  TESSERA_ASSIGN_OR_RETURN(const std::span<const Candidate> kept,
                           Distribution(logits, params, history, banned, position));
  double mass = 0;
  for (const Candidate& candidate : kept) {
    mass += candidate.p;
    if (u < mass) return candidate.id;
  }
  return kept.back().id;  // The sum may round to just below 1.
}

}  // namespace tessera::engine
