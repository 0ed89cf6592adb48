// SPDX-License-Identifier: Apache-2.0
#include "server/anthropic/message_request.h"

#include <fmt/format.h>

#include <utility>

#include "server/anthropic/fields.h"
#include "server/anthropic/message_options.h"
#include "server/anthropic/turns.h"
#include "server/chat/field_names.h"

namespace tessera::server::anthropic {
namespace {

using openai::ApiError;
using openai::ApiResult;
using openai::AskedChat;
using openai::BadField;

constexpr chat::FieldName kSame[] = {{"max_tokens", "max_tokens"},
                                     {"temperature", "temperature"},
                                     {"top_p", "top_p"},
                                     {"top_k", "top_k"},
                                     {"seed", "seed"},
                                     {"stop", "stop_sequences"},
                                     {"stream", "stream"},
                                     {"strict", "strict"}};
/// Of what chat's readers find in what was made of this API's fields.
constexpr chat::FieldName kClients[] = {{"stop", "stop_sequences"},
                                        {"separate_reasoning", "thinking"},
                                        {"include_reasoning", "thinking"},
                                        {"thinking_token_budget", "thinking"},
                                        {"response_format", "output_config"}};

/// Parts of that API which are asked for by header are not here.
void WarnOfBetas(const net::Request& request, std::vector<openai::Warning>* warnings) {
  if (const auto beta = request.headers.Find("anthropic-beta"))
    warnings->push_back({"unknown_field", "anthropic-beta",
                         fmt::format("the header anthropic-beta ({:.100}) was ignored", *beta)});
}

ApiResult<AskedChat> ReadAsked(const net::Request& request, unsigned api, const ServedModel& model,
                               json::Object* body) {
  auto checked = openai::ReadBody(request.body, MessageFields(), api, /*needs_model=*/true, model);
  if (!checked.has_value()) return std::unexpected(std::move(checked).error());
  *body = std::move(checked->body);
  AskedChat asked{.body = chat::InChatWords(*body, kSame),
                  .messages = {},
                  .tools = {},
                  .warnings = std::move(checked->warnings)};
  WarnOfBetas(request, &asked.warnings);
  if (api == kMessages && json::Find(*body, "max_tokens") == nullptr)
    return std::unexpected(BadField("max_tokens", "the field max_tokens is missing"));
  for (chat::Problem problem : {ReadThinking(*body, model, &asked.body),
                                ReadOutputConfig(*body, &asked.body, &asked.warnings)})
    if (problem.has_value()) return std::unexpected(*std::move(problem));
  auto tools = ReadMessageTools(*body, &asked.warnings);
  if (!tools.has_value()) return std::unexpected(std::move(tools).error());
  asked.tools = *std::move(tools);
  auto turns = ReadTurns(*body, &asked.warnings);
  if (!turns.has_value()) return std::unexpected(std::move(turns).error());
  asked.messages = std::move(turns->messages);
  asked.body["continue_final_message"] = turns->continues_last;
  return asked;
}

}  // namespace

ApiResult<MessageRequest> ReadMessageRequest(const net::Request& request, const ServedModel& model,
                                             const text::SpecialTokens& specials,
                                             int64_t now_unix_seconds) {
  json::Object body;
  auto asked = ReadAsked(request, kMessages, model, &body);
  if (!asked.has_value()) return std::unexpected(std::move(asked).error());
  auto made = openai::MakeChatRequest(*std::move(asked), model, specials, now_unix_seconds);
  if (!made.has_value())
    return std::unexpected(chat::InClientWords(std::move(made).error(), kClients));
  chat::PutInClientWords(&made->fields.warnings, kClients);
  return MessageRequest{.chat = *std::move(made), .omits_thinking = OmitsThinking(body)};
}

ApiResult<CountRequest> ReadCountRequest(const net::Request& request, const ServedModel& model,
                                         const text::SpecialTokens& specials,
                                         int64_t now_unix_seconds) {
  json::Object body;
  auto asked = ReadAsked(request, kCountTokens, model, &body);
  if (!asked.has_value()) return std::unexpected(std::move(asked).error());
  const auto prompt = openai::MakeChatPrompt(&*asked, model, specials, now_unix_seconds);
  if (!prompt.has_value()) return std::unexpected(prompt.error());
  if (auto error = openai::RefuseIfStrict(body, asked->warnings))
    return std::unexpected(*std::move(error));
  return CountRequest{.prompt_tokens = static_cast<int64_t>(prompt->ids.size()),
                      .warnings = std::move(asked->warnings)};
}

}  // namespace tessera::server::anthropic
