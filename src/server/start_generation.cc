// SPDX-License-Identifier: Apache-2.0
#include "server/start_generation.h"

#include <algorithm>
#include <utility>

#include "server/access/admission.h"
#include "server/event_stream.h"
#include "server/form_check.h"

namespace tessera::server {

std::optional<openai::ApiError> StartGeneration(const Context& context, const Reply& reply,
                                                std::vector<std::string> ids,
                                                std::vector<ChoiceSpec> choices,
                                                std::unique_ptr<GenerationListener> listener,
                                                const std::shared_ptr<EventStream>& stream) {
  ids.push_back(reply.request_id());
  // A name given twice would count one request as two.
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
  listener = MakeFormCheck(std::move(listener), choices,
                           {.counters = context.forms,
                            .worker = context.form_worker,
                            .tasks = context.tasks,
                            .clock = context.clock});
  if (const auto refusal = AdmitChoices(reply.caller(), &choices, &listener)) {
    reply.SetRetryAfter(refusal->retry_after);
    return ToApiError(*refusal);
  }
  std::function<void(const GenerationFacts&)> on_facts;
  if (const auto scope = reply.scope()) {
    scope->record().model = context.model.id;
    on_facts = [scope](const GenerationFacts& facts) { scope->record().generation = facts; };
  }
  auto started = Generation::Start({.engine = context.engine,
                                    .tasks = context.tasks,
                                    .registry = context.registry,
                                    .on_facts = std::move(on_facts),
                                    .stats = context.stats,
                                    .clock = context.clock},
                                   std::move(ids), std::move(choices), std::move(listener));
  if (!started.has_value()) {
    if (started.error().code() == Code::kResourceExhausted)
      reply.SetRetryAfter(context.engine->retry_after());
    return openai::FromStatus(started.error());
  }
  const std::shared_ptr<Generation> generation = *std::move(started);
  if (const auto scope = reply.scope())
    context.stats->ObservePreparation(context.clock->Now() - scope->record().arrival);
  if (stream != nullptr) context.streams->Watch(stream);
  // Weak: neither the connection nor the journal must keep a finished generation alive.
  const auto cancel = [weak = std::weak_ptr<Generation>(generation)] {
    if (const auto alive = weak.lock()) alive->Cancel(Cancelled("the client went away"));
  };
  if (stream != nullptr && stream->has_journal()) {
    // Its client may come back.
    context.tasks->Post([stream, cancel] { stream->OnAbandon(cancel); });
  } else {
    reply.OnDisconnect(cancel);
  }
  return std::nullopt;
}

}  // namespace tessera::server
