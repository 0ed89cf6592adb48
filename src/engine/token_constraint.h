// SPDX-License-Identifier: Apache-2.0
//
// TokenConstraint: which tokens one sequence may say next, so that its output keeps to a form (a
// JSON schema, a regular expression, a grammar, tool calls). The seam between the engine and
// whoever knows the form: the engine asks for a mask before each token and tells which token was
// drawn. It depends on the generated tokens alone: preemption, caching and batching leave it as it
// is. engine/grammar_constraint.h makes one of a text::Grammar.
//
// Life: made by the caller for one sequence (each of n choices has its own), it passes to the
// engine with engine::Request and is used by one thread at a time: first ComputeMask, then for each
// token Accept and ComputeMask. These run beside the model (mask_worker.h), never on the engine
// thread, and may take as long as a few milliseconds.
//
// The engine adds what ends an answer: where `may_end`, the request's EOS and stop ids are allowed
// besides the mask; elsewhere EOS ids are not. An output that may end and has no token left ends
// with FinishReason::kStop, whatever min_tokens and ignore_eos say.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "text/tokenizer.h"

namespace tessera::engine {

class TokenConstraint {
 public:
  struct Next {
    bool may_end = false;    // The output so far is whole.
    bool may_go_on = false;  // The mask has a token. Neither: ComputeMask fails instead.
  };

  virtual ~TokenConstraint() = default;

  /// Sets bit id % 32 of mask[id / 32] for each token that may continue the output, clears the
  /// others. `mask` has (vocabulary of the model + 31) / 32 words; ids of the model's padding,
  /// which the tokenizer does not know, stay clear. Tokens that end an answer are not in the mask.
  /// kResourceExhausted: the form costs too much work here; kInternal: a bug. After an error the
  /// constraint is not used again, and the request fails with it.
  virtual Result<Next> ComputeMask(std::span<uint32_t> mask) = 0;

  /// The output goes on with `id`, which the last mask allows. Errors as above.
  virtual Status Accept(text::TokenId id) = 0;
};

}  // namespace tessera::engine
