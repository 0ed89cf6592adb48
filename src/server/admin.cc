// SPDX-License-Identifier: Apache-2.0
#include "server/admin.h"

#include <fmt/format.h>

#include <chrono>

#include "server/metrics.h"
#include "server/openai/error.h"

namespace tessera::server {
namespace {

/// A step of the largest batch on the slowest machine we know takes seconds; one of minutes hangs.
constexpr Duration kStuckStep = std::chrono::minutes(2);

json::Object ModelCard(const Context& context) {
  const ServedModel& model = context.model;
  const engine::SamplingParams sampling = engine::WithDefaults(model.defaults);
  json::Object card{{"id", model.id},
                    {"object", "model"},
                    {"created", model.created_unix_seconds},
                    {"owned_by", model.owned_by},
                    {"max_model_len", context.engine->max_sequence_tokens()}};
  card["default_sampling_params"] = {{"temperature", sampling.temperature},
                                     {"top_p", sampling.top_p},
                                     {"top_k", sampling.top_k},
                                     {"min_p", sampling.min_p},
                                     {"repetition_penalty", sampling.repetition_penalty}};
  return card;
}

net::Response JsonResponse(const json::Object& body) {
  return net::Response::Json(200, json::Serialize(body));
}

}  // namespace

net::Response Health(const Context& context) {
  if (context.engine->draining())
    return openai::ErrorResponse(openai::FromStatus(Unavailable("the server is shutting down")));
  const Duration age = context.engine->step_age();
  if (age > kStuckStep)
    return openai::ErrorResponse(openai::FromStatus(
        Unavailable(fmt::format("the model has not finished a step for {:.0f} s", Seconds(age)))));
  return net::Response{};
}

net::Response Live() {
  return net::Response{};
}

net::Response Version(const Context& context) {
  return JsonResponse({{"version", TESSERA_VERSION}, {"model", context.model.id}});
}

net::Response Metrics(const Context& context) {
  const engine::Stats stats = context.engine->stats();
  net::Response response;
  response.headers.Set("Content-Type", kMetricsContentType);
  response.body = MetricsPage({.stats = stats,
                               .shape = context.engine->shape(),
                               .model_name = context.model.id,
                               .warnings = context.warnings->Snapshot(),
                               .vllm_names = context.options.vllm_metrics});
  return response;
}

net::Response ListModels(const Context& context) {
  json::Array cards;
  cards.push_back(ModelCard(context));
  return JsonResponse({{"object", "list"}, {"data", std::move(cards)}});
}

net::Response GetModel(const Context& context, std::string_view id) {
  if (!IsNameOf(context.model, id))
    return openai::ErrorResponse(openai::ModelNotFound(id, context.model.id));
  return JsonResponse(ModelCard(context));
}

}  // namespace tessera::server
