// SPDX-License-Identifier: Apache-2.0
#include "server/responses/response_answer.h"

#include <utility>

#include "server/openai/answer.h"

namespace tessera::server::responses {
namespace {

using Kind = chat::AnswerParts::Part::Kind;

/// What a message or thoughts hold.
json::Object Content(Kind kind, std::string_view text) {
  if (kind == Kind::kReasoning) return {{"type", "reasoning_text"}, {"text", text}};
  return {{"type", "output_text"},
          {"annotations", json::Array()},
          {"logprobs", json::Array()},
          {"text", text}};
}

bool IsCut(const chat::Ending& ending) {
  return ending.reason == engine::FinishReason::kLength;
}

/// Of a response and of the item that it ended in.
std::string_view StatusOf(bool is_cut) {
  return is_cut ? "incomplete" : "completed";
}

}  // namespace

json::Object ResponseAnswer::Usage(const chat::Ending& ending) const {
  const GenerationTotals& totals = ending.totals;
  return {{"input_tokens", head_.prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", totals.cached_tokens}}},
          {"output_tokens", totals.completion_tokens},
          {"output_tokens_details", {{"reasoning_tokens", parts().reasoning_tokens()}}},
          {"total_tokens", head_.prompt_tokens + totals.completion_tokens}};
}

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
                    {"previous_response_id", nullptr},
                    {"store", false},
                    {"truncation", "disabled"},
                    {"usage", nullptr}};
  for (const auto& [key, value] : head_.echo) body[key] = value;
  return body;
}

const std::string& ResponseAnswer::ItemId(size_t part) {
  while (item_ids_.size() <= part) {
    const Kind kind = parts().parts()[item_ids_.size()].kind;
    item_ids_.push_back(openai::MakeId(kind == Kind::kReasoning ? "rs_"
                                       : kind == Kind::kText    ? "msg_"
                                                                : "fc_"));
  }
  return item_ids_[part];
}

json::Object ResponseAnswer::Item(size_t part, std::string_view status, const std::string* text) {
  const chat::AnswerParts::Part& known = parts().parts()[part];
  json::Object item{{"id", ItemId(part)}, {"type", "function_call"}, {"status", status}};
  if (known.kind == Kind::kCall) {
    item["call_id"] = known.id;
    item["name"] = known.name;
    item["arguments"] = text == nullptr ? std::string() : *text;
    return item;
  }
  json::Array content;
  if (text != nullptr) content.push_back(Content(known.kind, *text));
  if (known.kind == Kind::kText) {
    item["type"] = "message";
    item["role"] = "assistant";
  } else {
    item["type"] = "reasoning";
    item["summary"] = json::Array();
    item["encrypted_content"] = nullptr;
  }
  item["content"] = std::move(content);
  return item;
}

json::Object ResponseAnswer::Whole(const chat::Ending& ending) {
  json::Object body = Body(StatusOf(IsCut(ending)));
  if (IsCut(ending)) body["incomplete_details"] = json::Object{{"reason", "max_output_tokens"}};
  json::Array output;
  const size_t count = parts().parts().size();
  for (size_t i = 0; i < count; ++i)
    output.push_back(Item(i, StatusOf(IsCut(ending) && i + 1 == count), &parts().parts()[i].text));
  body["output"] = std::move(output);
  body["usage"] = Usage(ending);
  std::vector<openai::Warning> warnings = head_.warnings;
  warnings.insert(warnings.end(), ending.warnings.begin(), ending.warnings.end());
  if (!warnings.empty()) body["warnings"] = openai::WarningsBody(warnings);
  return body;
}

net::SseEvent ResponseAnswer::Event(std::string_view type, json::Object members) {
  json::Object data{{"type", type}, {"sequence_number", sequence_number_++}};
  for (auto& [key, value] : members) data[key] = std::move(value);
  return {.event = std::string(type), .data = json::Serialize(data)};
}

net::SseEvent ResponseAnswer::ContentEvent(std::string_view type, size_t part,
                                           json::Object members) {
  json::Object all{{"item_id", ItemId(part)}, {"output_index", part}, {"content_index", 0}};
  for (auto& [key, value] : members) all[key] = std::move(value);
  return Event(type, std::move(all));
}

void ResponseAnswer::Begin(Events* events) {
  events->push_back(Event("response.created", {{"response", Body("in_progress")}}));
  events->push_back(Event("response.in_progress", {{"response", Body("in_progress")}}));
}

void ResponseAnswer::Open(size_t part, Events* events) {
  events->push_back(Event("response.output_item.added",
                          {{"output_index", part}, {"item", Item(part, "in_progress", nullptr)}}));
  const Kind kind = parts().parts()[part].kind;
  if (kind != Kind::kCall)
    events->push_back(
        ContentEvent("response.content_part.added", part, {{"part", Content(kind, "")}}));
}

void ResponseAnswer::Extend(size_t part, std::string_view text, Events* events) {
  switch (parts().parts()[part].kind) {
    case Kind::kReasoning:
      events->push_back(ContentEvent("response.reasoning_text.delta", part, {{"delta", text}}));
      break;
    case Kind::kText:
      events->push_back(ContentEvent("response.output_text.delta", part,
                                     {{"delta", text}, {"logprobs", json::Array()}}));
      break;
    case Kind::kCall:
      events->push_back(
          Event("response.function_call_arguments.delta",
                {{"item_id", ItemId(part)}, {"output_index", part}, {"delta", text}}));
      break;
  }
}

void ResponseAnswer::Close(size_t part, bool is_cut, Events* events) {
  const chat::AnswerParts::Part& known = parts().parts()[part];
  switch (known.kind) {
    case Kind::kReasoning:
      events->push_back(ContentEvent("response.reasoning_text.done", part, {{"text", known.text}}));
      break;
    case Kind::kText:
      events->push_back(ContentEvent("response.output_text.done", part,
                                     {{"text", known.text}, {"logprobs", json::Array()}}));
      break;
    case Kind::kCall:
      events->push_back(
          Event("response.function_call_arguments.done", {{"item_id", ItemId(part)},
                                                          {"output_index", part},
                                                          {"name", known.name},
                                                          {"arguments", known.text}}));
      break;
  }
  if (known.kind != Kind::kCall)
    events->push_back(ContentEvent("response.content_part.done", part,
                                   {{"part", Content(known.kind, known.text)}}));
  events->push_back(
      Event("response.output_item.done",
            {{"output_index", part}, {"item", Item(part, StatusOf(is_cut), &known.text)}}));
}

void ResponseAnswer::End(const chat::Ending& ending, Events* events) {
  events->push_back(Event(IsCut(ending) ? "response.incomplete" : "response.completed",
                          {{"response", Whole(ending)}}));
}

void ResponseAnswer::Fail(const openai::ApiError& error, Events* events) {
  json::Object body = Body("failed");
  body["error"] = json::Object{{"code", error.code}, {"message", error.message}};
  events->push_back(Event("response.failed", {{"response", std::move(body)}}));
}

net::Response ResponseAnswer::Refusal(const openai::ApiError& error) const {
  return openai::ErrorResponse(error);
}

}  // namespace tessera::server::responses
