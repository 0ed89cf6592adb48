// SPDX-License-Identifier: Apache-2.0
#include "server/responses/response_request.h"

#include <optional>
#include <utility>

#include "server/chat/field_names.h"
#include "server/openai/completion_request.h"
#include "server/responses/fields.h"
#include "server/responses/input.h"
#include "server/responses/response_options.h"

namespace tessera::server::responses {
namespace {

using openai::ApiError;
using openai::ApiResult;
using openai::AskedChat;

constexpr chat::FieldName kSame[] = {{"max_tokens", "max_output_tokens"},
                                     {"temperature", "temperature"},
                                     {"top_p", "top_p"},
                                     {"seed", "seed"},
                                     {"stream", "stream"},
                                     {"strict", "strict"}};
/// Of what chat's readers find in what was made of this API's fields.
constexpr chat::FieldName kClients[] = {{"max_tokens", "max_output_tokens"},
                                        {"messages", "input"},
                                        {"response_format", "text.format"},
                                        {"separate_reasoning", "reasoning"}};

ApiResult<AskedChat> ReadAsked(const json::Object& body, std::vector<openai::Warning> warnings,
                               const ServedModel& model) {
  AskedChat asked{.body = chat::InChatWords(body, kSame),
                  .messages = {},
                  .tools = {},
                  .warnings = std::move(warnings)};
  for (chat::Problem problem :
       {CheckFixed(body), ReadTextFormat(body, &asked.body, &asked.warnings),
        ReadReasoning(body, model, &asked.body, &asked.warnings)})
    if (problem.has_value()) return std::unexpected(*std::move(problem));
  auto tools = ReadResponseTools(body, &asked.warnings);
  if (!tools.has_value()) return std::unexpected(std::move(tools).error());
  asked.tools = *std::move(tools);
  auto messages = ReadInput(body, &asked.warnings);
  if (!messages.has_value()) return std::unexpected(std::move(messages).error());
  asked.messages = *std::move(messages);
  return asked;
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

}  // namespace

ApiResult<ResponseRequest> ReadResponseRequest(std::string_view text, const ServedModel& model,
                                               const text::SpecialTokens& specials,
                                               int64_t now_unix_seconds, int64_t max_model_len) {
  auto checked = openai::ReadBody(text, ResponseFields(), kResponses, /*needs_model=*/true, model);
  if (!checked.has_value()) return std::unexpected(std::move(checked).error());
  auto asked = ReadAsked(checked->body, std::move(checked->warnings), model);
  if (!asked.has_value()) return std::unexpected(std::move(asked).error());
  ResponseRequest request{.chat = {}, .echo = EchoOf(checked->body, asked->tools)};
  auto made = openai::MakeChatRequest(*std::move(asked), model, specials, now_unix_seconds);
  if (!made.has_value())
    return std::unexpected(chat::InClientWords(std::move(made).error(), kClients));
  request.chat = *std::move(made);
  const openai::GenerationFields& fields = request.chat.fields;
  chat::PutInClientWords(&request.chat.fields.warnings, kClients);
  if (auto error = CheckLength(static_cast<int64_t>(request.chat.prompt.ids.size()),
                               fields.max_tokens, max_model_len))
    return std::unexpected(*std::move(error));
  request.echo["temperature"] = fields.sampling.temperature;
  request.echo["top_p"] = fields.sampling.top_p;
  return request;
}

}  // namespace tessera::server::responses
