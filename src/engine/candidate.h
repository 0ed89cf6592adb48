// SPDX-License-Identifier: Apache-2.0
//
// Candidate: a token that may still be drawn, while the sampler's steps filter.
#pragma once

#include "text/tokenizer.h"

namespace tessera::engine {

struct Candidate {
  text::TokenId id = 0;
  double x = 0;  // (Logit - the greatest) / temperature, while filtering.
  double p = 0;  // Probability in the result.
};

}  // namespace tessera::engine
