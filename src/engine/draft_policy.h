// SPDX-License-Identifier: Apache-2.0
//
// DraftPolicy: how many guessed tokens of one sequence are worth checking. A guess costs a row of
// the step and gains a token when it and all before it are right. With p the share of guesses that
// were right lately, the k-th one gains p^k tokens: as many are checked as gain more than they
// cost. Below break-even none are; then p slowly forgets, so that a text that begins to repeat
// itself later gets another try.
//
// Plain values, one owner. No token depends on it.
#pragma once

#include <cstdint>

namespace tessera::engine {

/// Guessing tokens, to check several in one step. The answers are the same.
enum class Speculation : uint8_t {
  kOff,
  kNgram,  // By what followed the same words before (ngram_draft.h), while it pays.
};

/// Guesses that are checked in one step.
inline constexpr int64_t kDraftTokensMax = 8;

class DraftPolicy {
 public:
  /// `row_cost`: tokens that the batch could make in the time of one more row.
  int64_t Count(double row_cost) const;
  /// Of `drafted` guesses the first `accepted` were right. Those behind the first wrong one say
  /// nothing.
  void Observe(int64_t drafted, int64_t accepted);
  /// A step without a guess.
  void Rest();

  double rate() const { return rate_; }

 private:
  static constexpr double kPrior = 0.6;
  double rate_ = kPrior;
};

}  // namespace tessera::engine
