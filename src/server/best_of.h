// SPDX-License-Identifier: Apache-2.0
//
// BestOf: of the answers that were generated for a prompt passes on the best ones. It stands
// between a Generation, whose choices it collects, and the listener that writes the answer, which
// then hears of the kept choices alone, as if there had been no others. The best has the greatest
// mean log-probability of its tokens under the model; of equals the one of the lower number. Lives
// on the task thread.
#pragma once

#include <memory>

#include "server/generation.h"

namespace tessera::server {

/// `generated` choices of each prompt (consecutive) become `kept` ones, best first. The choices'
/// requests must ask for logprobs. Requires 1 <= kept < generated.
std::unique_ptr<GenerationListener> MakeBestOf(std::unique_ptr<GenerationListener> listener,
                                               size_t prompts, size_t generated, size_t kept);

}  // namespace tessera::server
