// SPDX-License-Identifier: Apache-2.0
//
// BeamSearch: which continuations of one prompt are followed (Freitag and Al-Onaizan, "Beam search
// strategies for neural machine translation", 2017; ends as transformers' generate does). In each
// round every live beam reports its likeliest next tokens; of all of them together the `width` best
// by summed log-probability live on. An ending token that is among the `width` best completes its
// beam. A complete beam's score is its sum / length ^ length_penalty, the ending token counted.
// The search is over when `width` beams are complete and, unless it stops early, none that is alive
// would score better if it ended now; or at max_tokens, where the live ones count as complete.
//
// Ties go to the lower beam, then to the lower id. Log-probabilities are log-softmax of the logits
// after logit_bias and the penalties, in double: the result depends on logits and parameters alone.
//
// Pure: it knows neither pages nor the model. One owner.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/request.h"

namespace tessera::engine {

struct BeamToken {
  double logprob = 0;  // Adjusted, see above: what the search counts.
  TokenOutput output;
};

/// A live beam's likeliest next tokens, best first. Enough of them: BeamSearch::wanted().
using BeamReport = std::vector<BeamToken>;

struct Beam {
  std::vector<TokenOutput> tokens;
  double logprob = 0;  // Sum.
  double score = 0;    // Once complete.
};

class BeamSearch {
 public:
  /// Begins with one live beam without tokens.
  BeamSearch(const BeamParams& params, const StopParams& stop);

  /// Tokens to report of each beam, fewer when no more are possible: even if all that end are
  /// among them, `width` go on.
  size_t wanted() const;

  /// One round. `reports` [live beams], each with a token or more. Returns the parent (number of a
  /// beam so far) of each beam that lives from now on, and live() are these; empty: it is over.
  std::vector<size_t> Advance(std::span<const BeamReport> reports);
  const std::vector<Beam>& live() const { return live_; }

  /// When over: the complete beams, best first, at most `width`.
  std::vector<Beam> TakeResults();

 private:
  struct Candidate {
    size_t parent = 0;
    const BeamToken* token = nullptr;
    double logprob = 0;
  };
  std::vector<Candidate> Ranked(std::span<const BeamReport> reports) const;
  Beam Extended(const Candidate& candidate) const;
  void Complete(Beam beam);
  double Score(const Beam& beam) const;
  bool IsDecided() const;

  const size_t width_;
  const double length_penalty_;
  const bool stops_early_;
  const size_t max_tokens_;
  const size_t ending_ids_;
  std::vector<Beam> live_;      // Best first.
  std::vector<Beam> complete_;  // Best first, of equals the earlier.
};

}  // namespace tessera::engine
