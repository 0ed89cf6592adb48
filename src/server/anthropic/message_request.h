// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/messages and /v1/messages/count_tokens: body -> values. Turns (turns.h), tools, thinking
// and the form of the output (message_options.h) are brought into the words of
// /v1/chat/completions, whose readers do the rest. Pure functions of body and model.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "net/http.h"
#include "server/openai/chat_request.h"

namespace tessera::server::anthropic {

struct MessageRequest {
  openai::ChatRequest chat;
  bool omits_thinking = false;  // Blocks of thoughts come without their text.
};

/// Parses, checks, renders, tokenises.
openai::ApiResult<MessageRequest> ReadMessageRequest(const net::Request& request,
                                                     const ServedModel& model,
                                                     const text::SpecialTokens& specials,
                                                     int64_t now_unix_seconds);

struct CountRequest {
  int64_t prompt_tokens = 0;
  std::vector<openai::Warning> warnings;
};
openai::ApiResult<CountRequest> ReadCountRequest(const net::Request& request,
                                                 const ServedModel& model,
                                                 const text::SpecialTokens& specials,
                                                 int64_t now_unix_seconds);

}  // namespace tessera::server::anthropic
