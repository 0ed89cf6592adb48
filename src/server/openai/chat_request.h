// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/chat/completions: body -> values. Messages are checked (messages.h), functions are read
// (tool_fields.h) and written into the prompt, and how the answer is read follows from them
// (message_format.h).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "server/openai/generation_fields.h"
#include "text/chat_prompt.h"

namespace tessera::server::openai {

struct ChatRequest {
  GenerationFields fields;
  text::ChatPrompt prompt;
};

/// Parses, checks, renders, tokenises. `now` is what a template's strftime_now shows.
ApiResult<ChatRequest> ReadChatRequest(std::string_view body, const ServedModel& model,
                                       const text::SpecialTokens& specials,
                                       int64_t now_unix_seconds);

/// Renders and tokenises the `messages` of a checked body, and its `tools`. Appends warnings.
ApiResult<text::ChatPrompt> ReadChatPrompt(const json::Object& body, const ServedModel& model,
                                           const text::SpecialTokens& specials,
                                           int64_t now_unix_seconds,
                                           std::vector<Warning>* warnings);

}  // namespace tessera::server::openai
