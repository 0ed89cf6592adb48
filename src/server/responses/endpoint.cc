// SPDX-License-Identifier: Apache-2.0
#include "server/responses/endpoint.h"

#include <memory>
#include <utility>
#include <vector>

#include "server/chat/event_answer.h"
#include "server/event_stream.h"
#include "server/openai/choices.h"
#include "server/openai/error.h"
#include "server/responses/response_answer.h"
#include "server/responses/response_request.h"
#include "server/start_generation.h"

namespace tessera::server::responses {
void HandleResponses(const Context& context, const net::Request& request, const Reply& reply) {
  const TimePoint arrival = context.clock->Now();
  const int64_t max_model_len = context.engine->max_sequence_tokens();
  auto parsed = ReadResponseRequest(request.body, context.model, context.specials,
                                    context.clock->UnixSeconds(), max_model_len);
  if (!parsed.has_value()) {
    (void)reply.Send(openai::ErrorResponse(parsed.error()));
    return;
  }
  const openai::GenerationFields& fields = parsed->chat.fields;
  context.warnings->Add(fields.warnings);
  const std::vector<engine::TokenId>& prompt = parsed->chat.prompt.ids;
  const int64_t max_tokens = fields.max_tokens.value_or(max_model_len - openai::Length(prompt));
  std::vector<ChoiceSpec> choices;
  choices.push_back(openai::MakeChoice(context, fields, prompt, 0, max_tokens, 0, arrival));
  const std::string id = openai::MakeId("resp_");
  auto stream = fields.stream ? std::make_shared<EventStream>(reply, context.clock) : nullptr;
  auto answer =
      std::make_unique<ResponseAnswer>(ResponseHead{.id = id,
                                                    .created = context.clock->UnixSeconds(),
                                                    .model = context.model.id,
                                                    .echo = std::move(parsed->echo),
                                                    .prompt_tokens = openai::Length(prompt),
                                                    .warnings = fields.warnings},
                                       fields.message);
  if (const auto error = StartGeneration(
          context, reply, {id}, std::move(choices),
          chat::MakeEventResponder(std::move(answer), reply, stream, context.warnings), stream))
    (void)reply.Send(openai::ErrorResponse(*error));
}

}  // namespace tessera::server::responses
