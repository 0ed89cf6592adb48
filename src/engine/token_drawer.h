// SPDX-License-Identifier: Apache-2.0
//
// TokenDrawer: a sequence and its row of logits -> its next token. What a step has to do for each
// sequence alone once the model has run, so that all workers share the rows of a step and
// many users do not wait for one thread.
//
// Holds scratch memory: one per thread. Reads the sequence only.
#pragma once

#include <vector>

#include "base/status.h"
#include "engine/request.h"
#include "engine/sampler.h"
#include "engine/sequence.h"

namespace tessera::engine {

class TokenDrawer {
 public:
  /// Errors as Sampler::Sample.
  Result<TokenOutput> Draw(const Sequence& sequence, const Logits& logits);

 private:
  Sampler sampler_;
  std::vector<TokenId> banned_;
};

}  // namespace tessera::engine
