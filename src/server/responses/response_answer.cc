// SPDX-License-Identifier: Apache-2.0
#include "server/responses/response_answer.h"

#include <utility>

namespace tessera::server::responses {
namespace {

json::Object Part(std::string_view text) {
  return {{"type", "output_text"},
          {"annotations", json::Array()},
          {"logprobs", json::Array()},
          {"text", text}};
}

json::Object Usage(int64_t prompt_tokens, const ResponseEnd& end) {
  return {{"input_tokens", prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", end.cached_tokens}}},
          {"output_tokens", end.output_tokens},
          {"output_tokens_details", {{"reasoning_tokens", 0}}},
          {"total_tokens", prompt_tokens + end.output_tokens}};
}

bool IsCut(const ResponseEnd& end) {
  return end.reason == engine::FinishReason::kLength;
}

/// Of the response and of its item alike.
std::string_view StatusOf(const ResponseEnd& end) {
  return IsCut(end) ? "incomplete" : "completed";
}

}  // namespace

json::Object ResponseAnswer::Body(std::string_view status) const {
  json::Object body{{"id", head_.id},
                    {"object", "response"},
                    {"created_at", head_.created},
                    {"status", status},
                    {"background", false},
                    {"error", nullptr},
                    {"incomplete_details", nullptr},
                    {"model", head_.model},
                    {"output", json::Array()},
                    {"parallel_tool_calls", true},
                    {"previous_response_id", nullptr},
                    {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
                    {"store", false},
                    {"tool_choice", "none"},
                    {"tools", json::Array()},
                    {"truncation", "disabled"},
                    {"usage", nullptr}};
  for (const auto& [key, value] : head_.echo) body[key] = value;
  return body;
}

json::Object ResponseAnswer::Item(std::string_view status, json::Array content) const {
  return {{"id", head_.item_id},
          {"type", "message"},
          {"status", status},
          {"role", "assistant"},
          {"content", std::move(content)}};
}

json::Object ResponseAnswer::Whole(std::string_view text, const ResponseEnd& end) const {
  json::Object body = Body(StatusOf(end));
  if (IsCut(end)) body["incomplete_details"] = json::Object{{"reason", "max_output_tokens"}};
  json::Array content;
  content.push_back(Part(text));
  json::Array output;
  output.push_back(Item(StatusOf(end), std::move(content)));
  body["output"] = std::move(output);
  body["usage"] = Usage(head_.prompt_tokens, end);
  if (!head_.warnings.empty()) body["warnings"] = openai::WarningsBody(head_.warnings);
  return body;
}

net::SseEvent ResponseAnswer::Event(std::string_view type, json::Object members) {
  json::Object data{{"type", type}, {"sequence_number", sequence_number_++}};
  for (auto& [key, value] : members) data[key] = std::move(value);
  return {.event = std::string(type), .data = json::Serialize(data)};
}

std::vector<net::SseEvent> ResponseAnswer::Begin() {
  std::vector<net::SseEvent> events;
  events.push_back(Event("response.created", {{"response", Body("in_progress")}}));
  events.push_back(Event("response.in_progress", {{"response", Body("in_progress")}}));
  events.push_back(Event("response.output_item.added",
                         {{"output_index", 0}, {"item", Item("in_progress", json::Array())}}));
  events.push_back(Event(
      "response.content_part.added",
      {{"item_id", head_.item_id}, {"output_index", 0}, {"content_index", 0}, {"part", Part("")}}));
  return events;
}

net::SseEvent ResponseAnswer::Delta(std::string_view text) {
  return Event("response.output_text.delta", {{"item_id", head_.item_id},
                                              {"output_index", 0},
                                              {"content_index", 0},
                                              {"delta", text},
                                              {"logprobs", json::Array()}});
}

std::vector<net::SseEvent> ResponseAnswer::End(std::string_view text, const ResponseEnd& end) {
  json::Array content;
  content.push_back(Part(text));
  std::vector<net::SseEvent> events;
  events.push_back(Event("response.output_text.done", {{"item_id", head_.item_id},
                                                       {"output_index", 0},
                                                       {"content_index", 0},
                                                       {"text", text},
                                                       {"logprobs", json::Array()}}));
  events.push_back(Event("response.content_part.done", {{"item_id", head_.item_id},
                                                        {"output_index", 0},
                                                        {"content_index", 0},
                                                        {"part", Part(text)}}));
  events.push_back(Event("response.output_item.done",
                         {{"output_index", 0}, {"item", Item(StatusOf(end), std::move(content))}}));
  events.push_back(Event(IsCut(end) ? "response.incomplete" : "response.completed",
                         {{"response", Whole(text, end)}}));
  return events;
}

net::SseEvent ResponseAnswer::Fail(const openai::ApiError& error) {
  json::Object body = Body("failed");
  body["error"] = json::Object{{"code", error.code}, {"message", error.message}};
  return Event("response.failed", {{"response", std::move(body)}});
}

}  // namespace tessera::server::responses
