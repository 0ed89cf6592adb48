// SPDX-License-Identifier: Apache-2.0
//
// Sampler: a row of logits -> the next token. The order of the steps is fixed and documented:
//
//   logit_bias -> repetition penalty (Keskar et al., CTRL, 2019; as in transformers: x > 0 ? x / r
//   : x * r, over prompt and generated ids, each once) -> frequency and presence penalties
//   (generated ids) -> temperature -> min_p (Nguyen et al., 2024) -> typical_p (Meister et al.,
//   2022) -> top_k (ties kept) -> top_p (Holtzman et al., 2019; smallest descending set with
//   cumulative >= p, lower ids first on a tie) -> softmax -> draw.
//
// All in double, over candidates in id order, so that a result depends on the row and the
// parameters alone. The draw is a pure function of (seed, stream, position). Temperature 0 is the
// largest value after penalties, lowest id on a tie.
//
// A Sampler holds scratch memory only: one per thread.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "engine/request.h"

namespace tessera::engine {

/// What the penalties look at: which ids the prompt has and how often each was generated.
class TokenHistory {
 public:
  /// Records nothing unless `params` has a penalty that needs it.
  TokenHistory(const SamplingParams& params, std::span<const TokenId> prompt);
  void Push(TokenId id);

  struct Counts {
    bool in_prompt = false;
    int64_t generated = 0;
  };
  const std::unordered_map<TokenId, Counts>& counts() const { return counts_; }

 private:
  bool is_used_;
  std::unordered_map<TokenId, Counts> counts_;
};

struct Candidate {
  TokenId id = 0;
  double x = 0;  // Logit while filtering.
  double p = 0;  // Probability in the result.
};

class Sampler {
 public:
  /// The distribution that Sample draws from: candidates with p > 0 in id order, sum of p = 1.
  /// `banned` ids are taken out first. Valid until the next call. kInternal when the logits hold a
  /// NaN, +infinity or nothing finite: the model, not the client, is at fault.
  Result<std::span<const Candidate>> Distribution(std::span<const float> logits,  // [vocab]
                                                  const SamplingParams& params,
                                                  const TokenHistory& history,
                                                  std::span<const TokenId> banned);

  /// The token at `position` (0 = first generated) of this request's stream.
  Result<TokenId> Sample(std::span<const float> logits, const SamplingParams& params,
                         const TokenHistory& history, std::span<const TokenId> banned,
                         uint64_t position);

 private:
  /// A bound below the k greatest of x_; -infinity when all stay.
  double LeastOfTopK(int64_t top_k);
  /// What Sample draws when nothing is filtered, without the list of candidates: the same sums in
  /// the same order.
  Result<TokenId> DrawFromAll(std::span<const float> logits, double temperature, double u);

  std::vector<double> x_;     // [vocab]
  std::vector<double> heap_;  // [top_k]
  std::vector<Candidate> candidates_;
  std::vector<Candidate> sorted_;
};

/// Log-softmax of the raw logits for `chosen` and the `top` best ids.
Logprobs ComputeLogprobs(std::span<const float> logits, TokenId chosen, int top);

}  // namespace tessera::engine
