// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/completions: body -> values. A pure function of body, model and context length.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/openai/generation_fields.h"

namespace tessera::server::openai {

struct Prompt {
  std::string text;                  // What `echo` repeats.
  std::vector<engine::TokenId> ids;  // With the marks of a gap, if the request has a suffix.
  /// [ids]: where the text of each begins in `text`, in code points; only for echo with logprobs.
  std::vector<int64_t> offsets = {};
};

struct CompletionRequest {
  GenerationFields fields;
  std::vector<std::shared_ptr<const Prompt>> prompts;
  bool echo = false;
  int64_t best_of = 1;  // Answers to generate of each prompt; at least n.

  /// What the engine is to compute of each prompt: as engine::Request::prompt_logprobs.
  int prompt_logprobs() const;
};

/// When the client names none: as the hosted API.
inline constexpr int64_t kCompletionMaxTokensDefault = 16;

/// Parses, checks, tokenises. Heavy for long prompts: never on the engine thread.
ApiResult<CompletionRequest> ReadCompletionRequest(std::string_view body, const ServedModel& model);

/// A prompt, or a list of them, as text or token ids, from `field`.
ApiResult<std::vector<std::shared_ptr<const Prompt>>> ReadPrompts(const json::Value& value,
                                                                  const ServedModel& model,
                                                                  bool add_special,
                                                                  std::string_view field);

/// 400 when prompt and answer cannot fit together, with all three numbers.
std::optional<ApiError> CheckLength(int64_t prompt_tokens, std::optional<int64_t> max_tokens,
                                    int64_t max_model_len, std::string_view field);

}  // namespace tessera::server::openai
