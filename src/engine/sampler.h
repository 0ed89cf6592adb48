// SPDX-License-Identifier: Apache-2.0
//
// Sampler: a row of logits -> the next token. The order of the steps is fixed and documented:
//
//   logit_bias -> repetition penalty (Keskar et al., CTRL, 2019; as in transformers: x > 0 ? x / r
//   : x * r, over prompt and generated ids, each once) -> frequency and presence penalties
//   (generated ids) -> DRY (sampler_dry.h) -> temperature -> min_p (Nguyen et al., 2024) ->
//   typical_p (Meister et al., 2022) -> top_k (ties kept) -> top_p (Holtzman et al., 2019; smallest
//   descending set with cumulative >= p, lower ids first on a tie) -> XTC (sampler_xtc.h) ->
//   softmax -> draw.
//
// All in double, over candidates in id order, so that a result depends on the row and the
// parameters alone. The draw, and XTC's, are pure functions of (seed, stream, position).
// Temperature 0 is the largest value after penalties, lowest id on a tie. No step looks at more of
// the vocabulary than it must: logit_row.h.
//
// A Sampler holds scratch memory only: one per thread.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "engine/candidate.h"
#include "engine/logit_row.h"
#include "engine/request.h"

namespace tessera::engine {

/// What the penalties look at: which ids the prompt has and how often each was generated; for DRY
/// all tokens in order.
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
  /// Prompt and generated; empty without DRY.
  std::span<const TokenId> tokens() const { return tokens_; }

 private:
  bool is_used_;
  bool has_dry_;
  std::unordered_map<TokenId, Counts> counts_;
  std::vector<TokenId> tokens_;
};

class Sampler {
 public:
  /// The distribution that Sample draws from: candidates with p > 0 in id order, sum of p = 1.
  /// `banned` ids are taken out first, and so is what `allowed` forbids (LogitRow::Reset);
  /// `position` decides XTC's draw. Valid until the next call. kInternal when the logits hold a
  /// NaN, +infinity or nothing finite: the model, not the client, is at fault; kInvalidArgument
  /// when the client leaves no token.
  Result<std::span<const Candidate>> Distribution(const Logits& logits,
                                                  const SamplingParams& params,
                                                  const TokenHistory& history,
                                                  std::span<const TokenId> banned,
                                                  uint64_t position = 0,
                                                  std::span<const uint32_t> allowed = {});

  /// The token at `position` (0 = first generated) of this request's stream.
  Result<TokenId> Sample(const Logits& logits, const SamplingParams& params,
                         const TokenHistory& history, std::span<const TokenId> banned,
                         uint64_t position, std::span<const uint32_t> allowed = {});

  /// The logits after logit_bias and all penalties, as Distribution has them before the
  /// temperature: [vocab], -infinity where banned. Errors and validity as there.
  Result<std::span<const double>> Adjust(const Logits& logits, const SamplingParams& params,
                                         const TokenHistory& history,
                                         std::span<const TokenId> banned);

 private:
  /// The row with biases, bans and penalties; the greatest of it.
  Result<TokenId> Prepare(const Logits& logits, const SamplingParams& params,
                          const TokenHistory& history, std::span<const TokenId> banned,
                          std::span<const uint32_t> allowed);
  /// Candidates to filter: none that a filter needs is missing.
  void CollectCandidates(const SamplingParams& params, double scale);
  /// Candidates that hold the top_p mass of the whole row, with p.
  void CollectNucleus(double top_p, double scale);
  void Filter(const SamplingParams& params);

  LogitRow row_;
  std::vector<Candidate> candidates_;
  std::vector<Candidate> sorted_;
  std::vector<double> adjusted_;  // [vocab], of Adjust
};

}  // namespace tessera::engine
