// SPDX-License-Identifier: Apache-2.0
#include "server/responses/response_request.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "server/openai/chat_request.h"
#include "server/openai/completion_request.h"
#include "server/responses/fields.h"
#include "server/responses/input.h"

namespace tessera::server::responses {
namespace {

using openai::ApiError;
using openai::BadField;

/// {"type", ...} as the chat dialect writes it: what describes a schema stands in an object of its
/// own.
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

/// text.format, or null.
const json::Value* FormatOf(const json::Object& body) {
  const json::Value* text = json::Find(body, "text");
  return text == nullptr ? nullptr : json::Find(text->get_object(), "format");
}

/// The fields under the names of the chat dialect, whose reader is shared. `text` has been checked.
json::Object Renamed(const json::Object& body) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"max_output_tokens", "max_tokens"},
      {"temperature", "temperature"},
      {"top_p", "top_p"},
      {"seed", "seed"},
      {"stream", "stream"}};
  json::Object renamed;
  for (const auto& [from, to] : kNames)
    if (const json::Value* value = json::Find(body, from)) renamed[to] = *value;
  if (const json::Value* format = FormatOf(body))
    renamed["response_format"] = ResponseFormat(format->get_object());
  return renamed;
}

/// Back to the name that the client knows.
ApiError NamedBack(ApiError error) {
  constexpr std::string_view kName = "response_format";
  if (error.param != kName) return error;
  error.param = "text.format";
  if (error.message.starts_with(kName)) error.message.replace(0, kName.size(), error.param);
  return error;
}

std::optional<ApiError> CheckText(const json::Object& body,
                                  std::vector<openai::Warning>* warnings) {
  const json::Value* text = json::Find(body, "text");
  if (text == nullptr) return std::nullopt;
  for (const auto& [key, value] : text->get_object())
    if (key != "format" && !value.is_null())
      warnings->push_back({"unknown_field", fmt::format("text.{:.100}", std::string_view(key)),
                           fmt::format("the field \"text.{:.100}\" is not known and was ignored",
                                       std::string_view(key))});
  const json::Value* format = FormatOf(body);
  if (format == nullptr) return std::nullopt;
  const json::Object* object = format->if_object();
  const json::Value* type = object == nullptr ? nullptr : json::Find(*object, "type");
  if (type != nullptr && type->is_string()) return std::nullopt;
  return BadField("text.format", "text.format.type is missing or no string");
}

std::optional<ApiError> CheckTruncation(const json::Object& body) {
  const json::Value* truncation = json::Find(body, "truncation");
  if (truncation == nullptr || truncation->get_string() == "disabled") return std::nullopt;
  return BadField("truncation", fmt::format("truncation is \"{:.50}\", expected \"disabled\": "
                                            "nothing is cut away in silence",
                                            std::string_view(truncation->get_string())));
}

/// The numbers of CheckLength under the name that the client knows.
std::optional<ApiError> CheckLength(int64_t prompt_tokens, std::optional<int64_t> max_tokens,
                                    int64_t max_model_len) {
  auto error = openai::CheckLength(prompt_tokens, max_tokens, max_model_len, "input");
  if (!error.has_value()) return error;
  constexpr std::string_view kName = "max_tokens";
  if (const size_t at = error->message.find(kName); at != error->message.npos)
    error->message.replace(at, kName.size(), "max_output_tokens");
  return error;
}

json::Object EchoOf(const json::Object& body, const openai::GenerationFields& fields) {
  const auto or_null = [&](std::string_view key) {
    const json::Value* value = json::Find(body, key);
    return value == nullptr ? json::Value(nullptr) : *value;
  };
  const json::Value* metadata = json::Find(body, "metadata");
  return {
      {"instructions", or_null("instructions")},
      {"max_output_tokens", or_null("max_output_tokens")},
      {"temperature", fields.sampling.temperature},
      {"top_p", fields.sampling.top_p},
      {"text",
       {{"format", FormatOf(body) == nullptr ? json::Value{{"type", "text"}} : *FormatOf(body)}}},
      {"user", or_null("user")},
      {"metadata", metadata == nullptr ? json::Value(json::Object()) : *metadata}};
}

}  // namespace

openai::ApiResult<ResponseRequest> ReadResponseRequest(std::string_view body,
                                                       const ServedModel& model,
                                                       const text::SpecialTokens& specials,
                                                       int64_t now_unix_seconds,
                                                       int64_t max_model_len) {
  auto checked = openai::ReadBody(body, ResponseFields(), kResponses, /*needs_model=*/true, model);
  if (!checked.has_value()) return std::unexpected(std::move(checked).error());
  std::vector<openai::Warning> of_text;
  for (auto error : {CheckText(checked->body, &of_text), CheckTruncation(checked->body)})
    if (error.has_value()) return std::unexpected(*std::move(error));
  auto fields = openai::ReadGenerationFields(Renamed(checked->body), openai::kChat, model);
  if (!fields.has_value()) return std::unexpected(NamedBack(std::move(fields).error()));
  ResponseRequest request;
  request.echo = EchoOf(checked->body, *fields);
  request.fields = *std::move(fields);
  std::vector<openai::Warning>& warnings = request.fields.warnings;
  warnings.insert(warnings.begin(), checked->warnings.begin(), checked->warnings.end());
  warnings.insert(warnings.end(), of_text.begin(), of_text.end());
  auto messages = ReadInput(checked->body, &warnings);
  if (!messages.has_value()) return std::unexpected(std::move(messages).error());
  auto prompt = openai::ReadChatPrompt({{"messages", *std::move(messages)}}, model, specials,
                                       now_unix_seconds, &warnings);
  if (!prompt.has_value()) {
    prompt.error().param = "input";
    return std::unexpected(std::move(prompt).error());
  }
  request.prompt = std::move(prompt->ids);
  if (auto error = CheckLength(static_cast<int64_t>(request.prompt.size()),
                               request.fields.max_tokens, max_model_len))
    return std::unexpected(*std::move(error));
  if (auto error = openai::RefuseIfStrict(checked->body, warnings))
    return std::unexpected(*std::move(error));
  return request;
}

}  // namespace tessera::server::responses
