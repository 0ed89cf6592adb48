// SPDX-License-Identifier: Apache-2.0
//
// TokenDrawer: a sequence and its row of logits -> its next token. What a step has to do for each
// sequence alone once the model has run, so that all workers share the rows of a step and
// many users do not wait for one thread.
//
// Holds scratch memory: one per thread. Reads the sequence only.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "base/status.h"
#include "engine/beam_search.h"
#include "engine/request.h"
#include "engine/sampler.h"
#include "engine/sequence.h"

namespace tessera::engine {

/// A token; of a beam, what may follow it.
using Drawn = std::variant<TokenOutput, BeamReport>;

class TokenDrawer {
 public:
  /// Errors as Sampler::Sample.
  Result<Drawn> Draw(const Sequence& sequence, const Logits& logits);

 private:
  Result<BeamReport> Report(const Sequence& sequence, const Logits& logits);
  /// What the sequence's mask allows and, where the output is whole, what ends it; empty without a
  /// mask.
  std::span<const uint32_t> Allowed(const Sequence& sequence);

  Sampler sampler_;
  std::vector<TokenId> banned_;
  std::vector<uint32_t> allowed_;  // [vocab / 32]
};

}  // namespace tessera::engine
