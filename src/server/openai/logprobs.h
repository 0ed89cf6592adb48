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

/// The prompt's part of a choice that echoes it. Empty spans: none.
struct EchoedLogprobs {
  std::span<const text::TokenId> ids;
  std::span<const int64_t> offsets;            // [ids], in code points.
  std::span<const engine::Logprobs> logprobs;  // [ids - 1]: nothing comes before the first.
  int top = 0;                                 // Alternatives to write of those in `logprobs`.
};

/// Completions: {tokens, token_logprobs, top_logprobs, text_offset}. Offsets are code points from
/// the beginning of the choice's text, `offset` of which precede the answer (echo).
json::Object CompletionLogprobs(const EchoedLogprobs& prompt,
                                std::span<const engine::PlacedToken> tokens,
                                const text::Tokenizer& tokenizer, int64_t offset);
/// Field prompt_logprobs as vLLM writes it: null for the first token, then for each an object of
/// token id -> {logprob, rank, decoded_token} with the `top` likeliest and the prompt's own.
json::Array PromptLogprobsBody(std::span<const text::TokenId> ids,
                               std::span<const engine::Logprobs> logprobs, int top,
                               const text::Tokenizer& tokenizer);
/// Chat: an array of {token, logprob, bytes, top_logprobs}.
json::Array ChatLogprobs(std::span<const engine::PlacedToken> tokens,
                         const text::Tokenizer& tokenizer);

}  // namespace tessera::server::openai
