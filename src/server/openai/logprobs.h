// SPDX-License-Identifier: Apache-2.0
//
// Log-probabilities as the two OpenAI endpoints write them. Pure functions.
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "engine/output_processor.h"
#include "text/tokenizer.h"

namespace tessera::server::openai {

/// The token's text; one that is no whole text by itself (part of a character) is written as the
/// hosted API does: "bytes:\xe6\x97".
std::string TokenLabel(const text::Tokenizer& tokenizer, text::TokenId id);

/// Completions: {tokens, token_logprobs, top_logprobs, text_offset}. Offsets are code points from
/// the beginning of the choice's text, `offset` of which precede the answer (echo).
json::Object CompletionLogprobs(std::span<const engine::PlacedToken> tokens,
                                const text::Tokenizer& tokenizer, int64_t offset);
/// Chat: an array of {token, logprob, bytes, top_logprobs}.
json::Array ChatLogprobs(std::span<const engine::PlacedToken> tokens,
                         const text::Tokenizer& tokenizer);

}  // namespace tessera::server::openai
