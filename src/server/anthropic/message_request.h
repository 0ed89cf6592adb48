// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/messages and /v1/messages/count_tokens: body -> values. Turns are brought to the form
// that chat templates expect: the system prompt as a first message, text blocks as one string,
// consecutive turns of one role as one. A last turn of the assistant is the beginning of its
// answer. Pure functions of body and model.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "server/openai/generation_fields.h"
#include "text/chat_prompt.h"

namespace tessera::server::anthropic {

struct MessageRequest {
  openai::GenerationFields fields;
  std::vector<engine::TokenId> prompt;
};

/// Parses, checks, renders, tokenises. `api` is kMessages or kCountTokens; for the latter only
/// prompt and warnings are set.
openai::ApiResult<MessageRequest> ReadMessageRequest(std::string_view body, unsigned api,
                                                     const ServedModel& model,
                                                     const text::SpecialTokens& specials,
                                                     int64_t now_unix_seconds);

}  // namespace tessera::server::anthropic
