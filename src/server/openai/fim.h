// SPDX-License-Identifier: Apache-2.0
//
// Fill in the middle: text before and after a gap -> the prompt that a model trained for it expects
// (Bavarian et al., 2022, "Efficient Training of Language Models to Fill in the Middle"). Which
// special tokens mark the parts differs by family and is found in the vocabulary; a vocabulary
// without them belongs to a model that was not trained for it. Pure functions.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer.h"

namespace tessera::server::openai {

struct FimTokens {
  text::TokenId prefix = -1;
  text::TokenId suffix = -1;
  text::TokenId middle = -1;  // -1: the family writes suffix, then prefix, and goes on from there.
  std::vector<text::TokenId> ends{};  // End the middle, beside the model's end of sequence.
};

std::optional<FimTokens> FindFimTokens(const text::Tokenizer& tokenizer);

/// `lead` (a BOS) comes first, then the marked parts in the order of the family.
std::vector<text::TokenId> MakeFimPrompt(const FimTokens& tokens,
                                         const std::vector<text::TokenId>& lead,
                                         const std::vector<text::TokenId>& prefix,
                                         const std::vector<text::TokenId>& suffix);

}  // namespace tessera::server::openai
