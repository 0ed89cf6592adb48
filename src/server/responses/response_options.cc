// SPDX-License-Identifier: Apache-2.0
#include "server/responses/response_options.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "server/chat/content.h"
#include "server/openai/tool_fields.h"

namespace tessera::server::responses {
namespace {

using chat::Place;
using chat::Problem;
using openai::BadField;

constexpr chat::ToolWords kWords{.tools = "tools",
                                 .choice = "tool_choice",
                                 .type = "function",
                                 .needs_type = true,
                                 .wrapper = {},
                                 .parameters = "parameters",
                                 .ignored = {}};

Problem ReadChoice(const json::Value& choice, chat::ToolFields* fields) {
  return openai::ReadToolChoice(choice, kWords, fields);
}

/// text.format, or null.
const json::Value* FormatOf(const json::Object& body) {
  const json::Value* text = json::Find(body, "text");
  return text == nullptr ? nullptr : json::Find(text->get_object(), "format");
}

/// {"type", ...} as chat writes it: what describes a schema stands in an object of its own.
json::Object ResponseFormat(const json::Object& format) {
  json::Object renamed{{"type", format.at("type")}}, described;
  for (const auto& [key, value] : format)
    if (key != "type") described[key] = value;
  if (format.at("type") == "json_schema") {
    renamed["json_schema"] = std::move(described);
  } else {
    for (auto& [key, value] : described) renamed[key] = std::move(value);
  }
  return renamed;
}

json::Value MemberOr(const json::Object& object, std::string_view key, json::Value fallback) {
  const json::Value* value = json::Find(object, key);
  return value == nullptr ? std::move(fallback) : *value;
}

}  // namespace

openai::ApiResult<chat::ToolFields> ReadResponseTools(const json::Object& body,
                                                      std::vector<openai::Warning>* warnings) {
  auto fields = ReadTools(body, kWords, ReadChoice, warnings);
  if (fields.has_value() && !openai::BoolOr(body, "parallel_tool_calls", true))
    fields->several = false;
  return fields;
}

Problem ReadReasoning(const json::Object& body, const ServedModel& model, json::Object* chat,
                      std::vector<openai::Warning>* warnings) {
  const json::Value* value = json::Find(body, "reasoning");
  if (value == nullptr) return std::nullopt;
  const json::Object& reasoning = value->get_object();
  const Place place{"reasoning", "reasoning"};
  constexpr std::array<std::string_view, 3> kMembers = {"effort", "summary", "generate_summary"};
  WarnOfUnknown(reasoning, kMembers, place, "was ignored", warnings);
  if (const json::Value* effort = json::Find(reasoning, "effort")) {
    if (!effort->is_string()) return BadPlace(place.Member("effort"), "is no string");
    if (*effort == "none") {
      (*chat)["chat_template_kwargs"] = {{"enable_thinking", false}};
    } else {
      (*chat)["reasoning_effort"] = *effort;
    }
  }
  for (const char* summary : {"summary", "generate_summary"})
    if (json::Find(reasoning, summary) != nullptr)
      warnings->push_back(
          {"normalized", "reasoning",
           fmt::format("reasoning.{}: no summaries are made; thoughts come as they are", summary)});
  if (model.chat_format.reasoning.has_value()) (*chat)["separate_reasoning"] = true;
  return std::nullopt;
}

Problem ReadTextFormat(const json::Object& body, json::Object* chat,
                       std::vector<openai::Warning>* warnings) {
  const json::Value* text = json::Find(body, "text");
  if (text == nullptr) return std::nullopt;
  constexpr std::array<std::string_view, 1> kMembers = {"format"};
  WarnOfUnknown(text->get_object(), kMembers, Place{"text", "text"}, "was ignored", warnings);
  const json::Value* format = FormatOf(body);
  if (format == nullptr) return std::nullopt;
  const json::Object* object = format->if_object();
  const json::Value* type = object == nullptr ? nullptr : json::Find(*object, "type");
  if (type == nullptr || !type->is_string())
    return BadField("text.format", "text.format.type is missing or no string");
  (*chat)["response_format"] = ResponseFormat(*object);
  return std::nullopt;
}

Problem CheckFixed(const json::Object& body) {
  const json::Value* truncation = json::Find(body, "truncation");
  if (truncation != nullptr && *truncation != "disabled")
    return BadField("truncation", fmt::format("truncation is {:.50}, expected \"disabled\": "
                                              "nothing is cut away in silence",
                                              json::Serialize(*truncation)));
  if (const json::Value* include = json::Find(body, "include"))
    for (const json::Value& entry : include->get_array())
      if (entry != "reasoning.encrypted_content")
        return BadField("include", fmt::format("include has {:.100}, expected nothing but "
                                               "\"reasoning.encrypted_content\"",
                                               json::Serialize(entry)));
  return std::nullopt;
}

json::Object EchoOf(const json::Object& body, const chat::ToolFields& tools) {
  json::Array list;
  for (const json::Value& entry : tools.tools) {
    const json::Object& function = entry.at("function").get_object();
    list.push_back({{"type", "function"},
                    {"name", function.at("name")},
                    {"description", MemberOr(function, "description", nullptr)},
                    {"parameters", MemberOr(function, "parameters", nullptr)},
                    {"strict", MemberOr(function, "strict", false)}});
  }
  const json::Value reasoning = MemberOr(body, "reasoning", json::Object());
  json::Object format{{"type", "text"}};
  return {{"instructions", MemberOr(body, "instructions", nullptr)},
          {"max_output_tokens", MemberOr(body, "max_output_tokens", nullptr)},
          {"parallel_tool_calls", openai::BoolOr(body, "parallel_tool_calls", true)},
          {"reasoning",
           {{"effort", MemberOr(reasoning.get_object(), "effort", nullptr)}, {"summary", nullptr}}},
          {"text", {{"format", FormatOf(body) == nullptr ? json::Value(format) : *FormatOf(body)}}},
          {"tool_choice", MemberOr(body, "tool_choice", "auto")},
          {"tools", std::move(list)},
          {"user", MemberOr(body, "user", nullptr)},
          {"metadata", MemberOr(body, "metadata", json::Object())}};
}

}  // namespace tessera::server::responses
