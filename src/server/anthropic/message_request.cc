// SPDX-License-Identifier: Apache-2.0
#include "server/anthropic/message_request.h"

#include <utility>

#include "server/anthropic/fields.h"
#include "server/anthropic/turns.h"
#include "server/openai/chat_request.h"

namespace tessera::server::anthropic {
namespace {

using openai::ApiError;
using openai::ApiResult;
using openai::BadField;

/// The fields under the names of the other dialect, whose reader is shared.
json::Object Renamed(const json::Object& body) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"max_tokens", "max_tokens"},
      {"temperature", "temperature"},
      {"top_p", "top_p"},
      {"top_k", "top_k"},
      {"seed", "seed"},
      {"stop_sequences", "stop"},
      {"stream", "stream"}};
  json::Object renamed;
  for (const auto& [from, to] : kNames)
    if (const json::Value* value = json::Find(body, from)) renamed[to] = *value;
  return renamed;
}

/// Back to the names that the client knows.
ApiError NamedBack(ApiError error) {
  if (error.param != "stop") return error;
  error.param = "stop_sequences";
  if (error.message.starts_with("stop")) error.message.replace(0, 4, "stop_sequences");
  return error;
}

ApiResult<std::vector<engine::TokenId>> ReadPrompt(const json::Object& body,
                                                   const ServedModel& model,
                                                   const text::SpecialTokens& specials,
                                                   int64_t now_unix_seconds,
                                                   std::vector<openai::Warning>* warnings) {
  auto turns = ReadTurns(body, warnings);
  if (!turns.has_value()) return std::unexpected(std::move(turns).error());
  const json::Object chat{{"messages", std::move(turns->messages)}};
  auto prompt = openai::ReadChatPrompt(chat, model, specials, now_unix_seconds, warnings);
  if (!prompt.has_value()) return std::unexpected(std::move(prompt).error());
  if (!turns->prefill.empty()) {
    // It is a turn's text: special tokens in it are text, as everywhere in messages.
    const auto begun =
        model.tokenizer->Encode(turns->prefill, {.add_special = false, .parse_special = false});
    if (!begun.has_value()) return std::unexpected(openai::FromStatus(begun.error(), "messages"));
    prompt->ids.insert(prompt->ids.end(), begun->begin(), begun->end());
  }
  return std::move(prompt->ids);
}

}  // namespace

ApiResult<MessageRequest> ReadMessageRequest(std::string_view body, unsigned api,
                                             const ServedModel& model,
                                             const text::SpecialTokens& specials,
                                             int64_t now_unix_seconds) {
  auto checked = openai::ReadBody(body, MessageFields(), api, /*needs_model=*/true, model);
  if (!checked.has_value()) return std::unexpected(std::move(checked).error());
  MessageRequest request;
  if (api == kMessages) {
    if (json::Find(checked->body, "max_tokens") == nullptr)
      return std::unexpected(BadField("max_tokens", "the field max_tokens is missing"));
    auto fields = openai::ReadGenerationFields(Renamed(checked->body), openai::kChat, model);
    if (!fields.has_value()) return std::unexpected(NamedBack(std::move(fields).error()));
    request.fields = *std::move(fields);
  }
  std::vector<openai::Warning>& warnings = request.fields.warnings;
  warnings.insert(warnings.begin(), checked->warnings.begin(), checked->warnings.end());
  auto prompt = ReadPrompt(checked->body, model, specials, now_unix_seconds, &warnings);
  if (!prompt.has_value()) return std::unexpected(std::move(prompt).error());
  request.prompt = *std::move(prompt);
  if (auto error = openai::RefuseIfStrict(checked->body, warnings))
    return std::unexpected(*std::move(error));
  return request;
}

}  // namespace tessera::server::anthropic
