// SPDX-License-Identifier: Apache-2.0
#include "engine/beam_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace tessera::engine {

BeamSearch::BeamSearch(const BeamParams& params, const StopParams& stop)
    : width_(static_cast<size_t>(params.width)),
      length_penalty_(params.length_penalty),
      stops_early_(params.stops_early),
      max_tokens_(static_cast<size_t>(stop.max_tokens)),
      ending_ids_(stop.eos_ids.size() + stop.stop_ids.size()),
      live_(1) {
  TESSERA_CHECK(params.width >= 1 && stop.max_tokens >= 1);
}

size_t BeamSearch::wanted() const {
  return width_ + ending_ids_;
}

std::vector<size_t> BeamSearch::Advance(std::span<const BeamReport> reports) {
  TESSERA_CHECK(reports.size() == live_.size() && !live_.empty());
  std::vector<Beam> next;
  std::vector<size_t> parents;
  size_t rank = 0;
  for (const Candidate& candidate : Ranked(reports)) {
    const bool is_best = rank++ < width_;
    if (candidate.token->output.is_end) {
      if (is_best) Complete(Extended(candidate));
    } else if (next.size() < width_) {
      next.push_back(Extended(candidate));
      parents.push_back(candidate.parent);
    }
    if (rank >= width_ && next.size() == width_) break;
  }
  live_ = std::move(next);
  if (!live_.empty() && live_.front().tokens.size() >= max_tokens_)
    for (Beam& beam : std::exchange(live_, {})) Complete(std::move(beam));
  if (IsDecided()) live_.clear();
  if (live_.empty()) parents.clear();
  return parents;
}

std::vector<BeamSearch::Candidate> BeamSearch::Ranked(std::span<const BeamReport> reports) const {
  std::vector<Candidate> candidates;
  for (size_t parent = 0; parent < reports.size(); ++parent)
    for (const BeamToken& token : reports[parent])
      candidates.push_back({parent, &token, live_[parent].logprob + token.logprob});
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
    if (a.logprob != b.logprob) return a.logprob > b.logprob;
    if (a.parent != b.parent) return a.parent < b.parent;
    return a.token->output.id < b.token->output.id;
  });
  return candidates;
}

Beam BeamSearch::Extended(const Candidate& candidate) const {
  Beam beam = live_[candidate.parent];
  beam.tokens.push_back(candidate.token->output);
  beam.logprob = candidate.logprob;
  return beam;
}

double BeamSearch::Score(const Beam& beam) const {
  return beam.logprob / std::pow(static_cast<double>(beam.tokens.size()), length_penalty_);
}

void BeamSearch::Complete(Beam beam) {
  beam.score = Score(beam);
  const auto place =
      std::ranges::upper_bound(complete_, beam.score, std::greater<>(), &Beam::score);
  complete_.insert(place, std::move(beam));
  if (complete_.size() > width_) complete_.pop_back();
}

bool BeamSearch::IsDecided() const {
  if (complete_.size() < width_ || live_.empty()) return false;
  return stops_early_ || Score(live_.front()) <= complete_.back().score;
}

std::vector<Beam> BeamSearch::TakeResults() {
  return std::exchange(complete_, {});
}

}  // namespace tessera::engine
