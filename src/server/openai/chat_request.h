// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/chat/completions: body -> values. Messages are checked and brought to the form that chat
// templates expect (content a string, tool-call arguments an object); each change is a warning.
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

/// Checks `messages` and normalises them in place.
ApiResult<std::vector<Warning>> NormalizeMessages(json::Value* messages);

/// Renders and tokenises the `messages` of a checked body (chat and /tokenize). Appends warnings.
ApiResult<text::ChatPrompt> ReadChatPrompt(const json::Object& body, const ServedModel& model,
                                           const text::SpecialTokens& specials,
                                           int64_t now_unix_seconds,
                                           std::vector<Warning>* warnings);

}  // namespace tessera::server::openai
