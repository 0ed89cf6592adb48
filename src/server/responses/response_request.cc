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

/// The fields under the names of the chat dialect, whose reader is shared.
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
  return renamed;
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
  const json::Value* format = json::Find(text->get_object(), "format");
  if (format == nullptr) return std::nullopt;
  const json::Value* type =
      format->is_object() ? json::Find(format->get_object(), "type") : nullptr;
  if (type == nullptr || !type->is_string())
    return BadField("text.format", "text.format.type is missing or no string");
  if (type->get_string() == "text") return std::nullopt;
  ApiError error = BadField(
      "text.format", fmt::format("text.format of type \"{:.50}\" is not supported by this server "
                                 "yet, expected \"text\"",
                                 std::string_view(type->get_string())));
  error.code = "unsupported_parameter";
  return error;
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
  return {{"instructions", or_null("instructions")},
          {"max_output_tokens", or_null("max_output_tokens")},
          {"temperature", fields.sampling.temperature},
          {"top_p", fields.sampling.top_p},
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
  auto fields = openai::ReadGenerationFields(Renamed(checked->body), openai::kChat, model);
  if (!fields.has_value()) return std::unexpected(std::move(fields).error());
  ResponseRequest request;
  request.echo = EchoOf(checked->body, *fields);
  request.fields = *std::move(fields);
  std::vector<openai::Warning>& warnings = request.fields.warnings;
  warnings.insert(warnings.begin(), checked->warnings.begin(), checked->warnings.end());
  for (auto error : {CheckText(checked->body, &warnings), CheckTruncation(checked->body)})
    if (error.has_value()) return std::unexpected(*std::move(error));
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
