// SPDX-License-Identifier: Apache-2.0
//
// TokenDrawer: a sequence and its row of logits -> its next token. What a step has to do for each
// sequence alone once the model has run, so that all workers share the rows of a step and
// many users do not wait for one thread.
//
// Holds scratch memory: one per thread. Reads the sequence only.
#pragma once

#include <span>
#include <variant>
#include <vector>

#include "base/status.h"
#include "engine/beam_search.h"
#include "engine/request.h"
#include "engine/sampler.h"
#include "engine/sequence.h"

namespace tessera::engine {

/// Tokens, one or more; of a beam, what may follow it.
using Drawn = std::variant<std::vector<TokenOutput>, BeamReport>;

class TokenDrawer {
 public:
  /// `rows`: logits after its last token and after each of sequence.drafts. A token is drawn from
  /// the first; as long as the draft is what was drawn, another one from the next row, to which
  /// this draft has led. So the tokens are those that single steps would have given. Errors as
  /// Sampler::Sample.
  Result<Drawn> Draw(const Sequence& sequence, std::span<const Logits> rows);

 private:
  struct Place {  // Of the token in the answer.
    const TokenHistory& history;
    int64_t generated = 0;              // Tokens before it.
    std::span<const uint32_t> allowed;  // By the mask; empty without one.
  };
  /// Fills banned_: what must not be the token after so many.
  void Ban(const StopParams& stop, int64_t generated);
  Result<TokenOutput> DrawOne(const Request& request, const Place& place, const Logits& logits);
  Result<BeamReport> Report(const Sequence& sequence, const Logits& logits);
  /// What the sequence's mask allows and, where the output is whole, what ends it; empty without a
  /// mask.
  std::span<const uint32_t> Allowed(const Sequence& sequence);

  Sampler sampler_;
  std::vector<TokenId> banned_;
  std::vector<uint32_t> allowed_;  // [vocab / 32]
};

}  // namespace tessera::engine
