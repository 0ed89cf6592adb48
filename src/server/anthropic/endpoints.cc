// SPDX-License-Identifier: Apache-2.0
#include "server/anthropic/endpoints.h"

#include <memory>
#include <utility>
#include <vector>

#include "server/anthropic/error.h"
#include "server/anthropic/message_answer.h"
#include "server/anthropic/message_request.h"
#include "server/chat/event_answer.h"
#include "server/event_stream.h"
#include "server/openai/choices.h"
#include "server/openai/completion_request.h"
#include "server/start_generation.h"

namespace tessera::server::anthropic {
namespace {

void Refuse(const openai::ApiError& error, const Reply& reply) {
  (void)reply.Send(ErrorResponse(error, reply.request_id()));
}

}  // namespace

void HandleMessages(const Context& context, const net::Request& request, const Reply& reply) {
  const TimePoint arrival = context.clock->Now();
  auto parsed =
      ReadMessageRequest(request, context.model, context.specials, context.clock->UnixSeconds());
  if (!parsed.has_value()) return Refuse(parsed.error(), reply);
  openai::GenerationFields& fields = parsed->chat.fields;
  const std::vector<engine::TokenId>& prompt = parsed->chat.prompt.ids;
  if (const auto error = openai::CheckLength(openai::Length(prompt), fields.max_tokens,
                                             context.engine->max_sequence_tokens(), "messages"))
    return Refuse(*error, reply);
  context.warnings->Add(fields.warnings);
  std::vector<ChoiceSpec> choices;
  choices.push_back(openai::MakeChoice(context, fields, prompt, 0, *fields.max_tokens, 0, arrival));
  const std::string id = openai::MakeId("msg_");
  auto stream = fields.stream ? std::make_shared<EventStream>(reply, context.clock) : nullptr;
  auto answer =
      std::make_unique<MessageAnswer>(MessageHead{.id = id,
                                                  .model = context.model.id,
                                                  .request_id = reply.request_id(),
                                                  .prompt_tokens = openai::Length(prompt),
                                                  .omits_thinking = parsed->omits_thinking,
                                                  .warnings = fields.warnings},
                                      fields.message);
  if (const auto error = StartGeneration(
          context, reply, {id}, std::move(choices),
          chat::MakeEventResponder(std::move(answer), reply, stream, context.warnings), stream))
    Refuse(*error, reply);
}

void HandleCountTokens(const Context& context, const net::Request& request, const Reply& reply) {
  auto parsed =
      ReadCountRequest(request, context.model, context.specials, context.clock->UnixSeconds());
  if (!parsed.has_value()) return Refuse(parsed.error(), reply);
  context.warnings->Add(parsed->warnings);
  json::Object answer{{"input_tokens", parsed->prompt_tokens}};
  if (!parsed->warnings.empty()) answer["warnings"] = openai::WarningsBody(parsed->warnings);
  (void)reply.Send(net::Response::Json(200, json::Serialize(answer)));
}

}  // namespace tessera::server::anthropic
