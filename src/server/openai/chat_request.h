// SPDX-License-Identifier: Apache-2.0
//
// A chat: body -> values. ReadChatRequest is POST /v1/chat/completions: messages are checked
// (messages.h) and functions read (tool_fields.h). The rest serves every dialect that brings its
// requests into this one's words (AskedChat): the prompt is rendered, and how the answer is read
// and what it is held to follows (message_format.h, tool_constraint.h).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/chat/tools.h"
#include "server/openai/generation_fields.h"
#include "text/chat_prompt.h"

namespace tessera::server::openai {

struct ChatRequest {
  GenerationFields fields;
  text::ChatPrompt prompt;
};

/// What a client asks, in the words of /v1/chat/completions.
struct AskedChat {
  json::Object body;     // Fields have the types of the schema.
  json::Value messages;  // As NormalizeMessages leaves them.
  chat::ToolFields tools;
  std::vector<Warning> warnings;  // So far.
};

/// Parses, checks, renders, tokenises. `now` is what a template's strftime_now shows.
ApiResult<ChatRequest> ReadChatRequest(std::string_view body, const ServedModel& model,
                                       const text::SpecialTokens& specials,
                                       int64_t now_unix_seconds);
/// The same behind the parsing.
ApiResult<ChatRequest> MakeChatRequest(AskedChat asked, const ServedModel& model,
                                       const text::SpecialTokens& specials,
                                       int64_t now_unix_seconds);

/// Renders and tokenises the `messages` of a checked body, and its `tools`. Appends warnings.
ApiResult<text::ChatPrompt> ReadChatPrompt(const json::Object& body, const ServedModel& model,
                                           const text::SpecialTokens& specials,
                                           int64_t now_unix_seconds,
                                           std::vector<Warning>* warnings);
/// Renders and tokenises. Appends warnings to those of `asked`.
ApiResult<text::ChatPrompt> MakeChatPrompt(AskedChat* asked, const ServedModel& model,
                                           const text::SpecialTokens& specials,
                                           int64_t now_unix_seconds);

}  // namespace tessera::server::openai
