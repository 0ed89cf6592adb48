// SPDX-License-Identifier: Apache-2.0
#include "server/anthropic/message_answer.h"

#include <fmt/format.h>

#include <utility>

#include "server/anthropic/error.h"
#include "server/chat/history.h"

namespace tessera::server::anthropic {
namespace {

using Kind = chat::AnswerParts::Part::Kind;

json::Object Message(const MessageHead& head) {
  return {{"id", head.id},           {"type", "message"},        {"role", "assistant"},
          {"model", head.model},     {"content", json::Array()}, {"stop_reason", nullptr},
          {"stop_sequence", nullptr}};
}

net::SseEvent Event(std::string_view type, json::Object members) {
  json::Object data{{"type", type}};
  for (auto& [key, value] : members) data[key] = std::move(value);
  return {.event = std::string(type), .data = json::Serialize(data)};
}

net::SseEvent Delta(size_t part, json::Object delta) {
  return Event("content_block_delta", {{"index", part}, {"delta", std::move(delta)}});
}

/// What a call was given, as an object. An answer that was cut within it leaves it broken.
json::Object InputOf(const chat::AnswerParts::Part& call, std::vector<openai::Warning>* warnings) {
  json::Value input = chat::CallArguments(call.text);
  if (input.is_object()) return std::move(input.get_object());
  warnings->push_back({"tool_parse_error", "content",
                       fmt::format("the answer ended within the input of the call of {}: {:.200}",
                                   call.name, call.text)});
  return {};
}

}  // namespace

json::Object MessageAnswer::EmptyBlock(const Part& part) const {
  switch (part.kind) {
    case Kind::kReasoning:
      // Thoughts need no signature here to be sent back.
      return {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}};
    case Kind::kText:
      return {{"type", "text"}, {"text", ""}};
    case Kind::kCall:
      break;
  }
  return {{"type", "tool_use"}, {"id", part.id}, {"name", part.name}, {"input", json::Object()}};
}

json::Object MessageAnswer::Block(const Part& part, std::vector<openai::Warning>* warnings) const {
  json::Object block = EmptyBlock(part);
  switch (part.kind) {
    case Kind::kReasoning:
      if (!head_.omits_thinking) block["thinking"] = part.text;
      break;
    case Kind::kText:
      block["text"] = part.text;
      break;
    case Kind::kCall:
      block["input"] = InputOf(part, warnings);
      break;
  }
  return block;
}

/// {"stop_reason", "stop_sequence"}.
json::Object MessageAnswer::Stop(const chat::Ending& ending) const {
  const std::string& stop = ending.totals.stop_strings.front();
  if (ending.reason == engine::FinishReason::kLength)
    return {{"stop_reason", "max_tokens"}, {"stop_sequence", nullptr}};
  if (parts().EndsInCalls(ending.reason))
    return {{"stop_reason", "tool_use"}, {"stop_sequence", nullptr}};
  if (stop.empty()) return {{"stop_reason", "end_turn"}, {"stop_sequence", nullptr}};
  return {{"stop_reason", "stop_sequence"}, {"stop_sequence", stop}};
}

/// As that API counts: tokens read from the cache are not among the input tokens.
json::Object MessageAnswer::Usage(const chat::Ending& ending) const {
  return {{"input_tokens", head_.prompt_tokens - ending.totals.cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", ending.totals.cached_tokens},
          {"output_tokens", ending.totals.completion_tokens}};
}

std::vector<openai::Warning> MessageAnswer::Warnings(const chat::Ending& ending) const {
  std::vector<openai::Warning> warnings = head_.warnings;
  warnings.insert(warnings.end(), ending.warnings.begin(), ending.warnings.end());
  return warnings;
}

json::Object MessageAnswer::Whole(const chat::Ending& ending) {
  std::vector<openai::Warning> warnings = Warnings(ending);
  json::Object message = Message(head_);
  json::Array content;
  for (const Part& part : parts().parts()) content.push_back(Block(part, &warnings));
  message["content"] = std::move(content);
  for (auto& [key, value] : Stop(ending)) message[key] = value;
  message["usage"] = Usage(ending);
  if (!warnings.empty()) message["warnings"] = openai::WarningsBody(warnings);
  return message;
}

void MessageAnswer::Begin(Events* events) {
  json::Object message = Message(head_);
  message["usage"] = Usage({});
  events->push_back(Event("message_start", {{"message", std::move(message)}}));
}

void MessageAnswer::Open(size_t part, Events* events) {
  events->push_back(Event("content_block_start",
                          {{"index", part}, {"content_block", EmptyBlock(parts().parts()[part])}}));
  if (part == 0) events->push_back(Event("ping", {}));
}

void MessageAnswer::Extend(size_t part, std::string_view text, Events* events) {
  switch (parts().parts()[part].kind) {
    case Kind::kReasoning:
      if (!head_.omits_thinking)
        events->push_back(Delta(part, {{"type", "thinking_delta"}, {"thinking", text}}));
      break;
    case Kind::kText:
      events->push_back(Delta(part, {{"type", "text_delta"}, {"text", text}}));
      break;
    case Kind::kCall:
      events->push_back(Delta(part, {{"type", "input_json_delta"}, {"partial_json", text}}));
      break;
  }
}

void MessageAnswer::Close(size_t part, bool /*is_cut*/, Events* events) {
  // Clients look for it before they take the block as whole.
  if (parts().parts()[part].kind == Kind::kReasoning)
    events->push_back(Delta(part, {{"type", "signature_delta"}, {"signature", ""}}));
  events->push_back(Event("content_block_stop", {{"index", part}}));
}

void MessageAnswer::End(const chat::Ending& ending, Events* events) {
  json::Object delta{{"delta", Stop(ending)}, {"usage", Usage(ending)}};
  const std::vector<openai::Warning> warnings = Warnings(ending);
  if (!warnings.empty()) delta["warnings"] = openai::WarningsBody(warnings);
  events->push_back(Event("message_delta", std::move(delta)));
  events->push_back(Event("message_stop", {}));
}

void MessageAnswer::Fail(const openai::ApiError& error, Events* events) {
  events->push_back(
      {.event = "error", .data = json::Serialize(ErrorBody(error, head_.request_id))});
}

net::Response MessageAnswer::Refusal(const openai::ApiError& error) const {
  return ErrorResponse(error, head_.request_id);
}

}  // namespace tessera::server::anthropic
