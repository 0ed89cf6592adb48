// SPDX-License-Identifier: Apache-2.0
#include "server/anthropic/message_answer.h"

namespace tessera::server::anthropic {
namespace {

/// As that API counts: tokens read from the cache are not among the input tokens.
json::Object Usage(int64_t prompt_tokens, int64_t cached_tokens, int64_t output_tokens) {
  return {{"input_tokens", prompt_tokens - cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", cached_tokens},
          {"output_tokens", output_tokens}};
}

json::Object Message(const MessageHead& head) {
  return {{"id", head.id},           {"type", "message"},        {"role", "assistant"},
          {"model", head.model},     {"content", json::Array()}, {"stop_reason", nullptr},
          {"stop_sequence", nullptr}};
}

/// {"stop_reason", "stop_sequence"}.
json::Object Stop(const MessageEnd& end) {
  if (end.reason == engine::FinishReason::kLength)
    return {{"stop_reason", "max_tokens"}, {"stop_sequence", nullptr}};
  if (end.stop_sequence.empty()) return {{"stop_reason", "end_turn"}, {"stop_sequence", nullptr}};
  return {{"stop_reason", "stop_sequence"}, {"stop_sequence", end.stop_sequence}};
}

net::SseEvent Event(std::string_view type, json::Object members) {
  json::Object data{{"type", type}};
  for (auto& [key, value] : members) data[key] = std::move(value);
  return {.event = std::string(type), .data = json::Serialize(data)};
}

}  // namespace

json::Object WholeMessage(const MessageHead& head, std::string_view text, const MessageEnd& end) {
  json::Object message = Message(head);
  message["content"] = {{{"type", "text"}, {"text", text}}};
  for (auto& [key, value] : Stop(end)) message[key] = value;
  message["usage"] = Usage(head.prompt_tokens, end.cached_tokens, end.output_tokens);
  if (!head.warnings.empty()) message["warnings"] = openai::WarningsBody(head.warnings);
  return message;
}

std::vector<net::SseEvent> BeginEvents(const MessageHead& head) {
  json::Object message = Message(head);
  message["usage"] = Usage(head.prompt_tokens, 0, 0);
  return {Event("message_start", {{"message", std::move(message)}}),
          Event("content_block_start",
                {{"index", 0}, {"content_block", {{"type", "text"}, {"text", ""}}}}),
          Event("ping", {})};
}

net::SseEvent TextEvent(std::string_view text) {
  return Event("content_block_delta",
               {{"index", 0}, {"delta", {{"type", "text_delta"}, {"text", text}}}});
}

std::vector<net::SseEvent> EndEvents(const MessageHead& head, const MessageEnd& end) {
  json::Object delta{{"delta", Stop(end)},
                     {"usage", Usage(head.prompt_tokens, end.cached_tokens, end.output_tokens)}};
  if (!head.warnings.empty()) delta["warnings"] = openai::WarningsBody(head.warnings);
  return {Event("content_block_stop", {{"index", 0}}), Event("message_delta", std::move(delta)),
          Event("message_stop", {})};
}

}  // namespace tessera::server::anthropic
