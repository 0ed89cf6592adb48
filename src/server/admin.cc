// SPDX-License-Identifier: Apache-2.0
#include "server/admin.h"

#include <fmt/format.h>

#include <optional>

#include "base/log.h"
#include "base/process_memory.h"
#include "server/metrics.h"
#include "server/openai/completion_request.h"
#include "server/openai/error.h"
#include "server/openai/fim.h"
#include "server/readiness.h"

namespace tessera::server {
namespace {

json::Object SamplingDefaults(const engine::SamplingParams& sampling) {
  return {{"temperature", sampling.temperature},
          {"top_p", sampling.top_p},
          {"top_k", sampling.top_k},
          {"min_p", sampling.min_p},
          {"typical_p", sampling.typical_p},
          {"repetition_penalty", sampling.repetition_penalty},
          {"frequency_penalty", sampling.frequency_penalty},
          {"presence_penalty", sampling.presence_penalty}};
}

json::Object ModelCard(const Context& context) {
  const ServedModel& model = context.model;
  const runtime::ModelShape& shape = context.engine->shape();
  json::Object card{{"id", model.id},
                    {"object", "model"},
                    {"created", model.created_unix_seconds},
                    {"owned_by", model.owned_by},
                    {"max_model_len", context.engine->max_sequence_tokens()},
                    {"context_length", shape.max_seq_len},
                    {"kv_cache_tokens", shape.page_count * shape.page_tokens},
                    {"vocab_size", model.tokenizer->vocab_size()}};
  // Null: what fits.
  card["default_max_tokens"] = {{"completions", openai::kCompletionMaxTokensDefault},
                                {"chat", nullptr}};
  card["default_sampling_params"] = SamplingDefaults(engine::WithDefaults(model.defaults));
  card["capabilities"] = {{"chat", model.chat_template != nullptr},
                          {"suffix", openai::FindFimTokens(*model.tokenizer).has_value()},
                          {"embeddings", shape.hidden_size > 0}};
  return card;
}

template <class T>
std::optional<T> OrNothing(const Result<T>& result) {
  return result.has_value() ? std::optional<T>(*result) : std::nullopt;
}

net::Response JsonResponse(const json::Object& body) {
  return net::Response::Json(200, json::Serialize(body));
}

}  // namespace

net::Response Health(const Context& context) {
  const Status alive = CheckAlive(context);
  return alive.ok() ? net::Response{} : openai::ErrorResponse(openai::FromStatus(alive));
}

net::Response Live() {
  return net::Response{};
}

net::Response Version(const Context& context) {
  return JsonResponse({{"version", TESSERA_VERSION},
                       {"model", context.model.id},
                       {"system_fingerprint", context.model.fingerprint}});
}

net::Response Metrics(const Context& context) {
  const engine::Stats stats = context.engine->stats();
  const auto memory = context.memory->Read();
  const auto process = ReadProcessUse();
  net::Response response;
  response.headers.Set("Content-Type", kMetricsContentType);
  response.body = MetricsPage({.stats = stats,
                               .shape = context.engine->shape(),
                               .model_name = context.model.id,
                               .warnings = context.warnings->Snapshot(),
                               .calls = context.warnings->calls(),
                               .forms = context.forms->Snapshot(),
                               .grammars = context.model.grammars->counters(),
                               .serving = context.stats->Snapshot(),
                               .http = context.http_stats(),
                               .traces = context.exporter == nullptr ? otlp::ExporterCounters()
                                                                     : context.exporter->counters(),
                               .load_seconds = context.model.load_seconds,
                               .download = context.options.downloads == nullptr
                                               ? std::nullopt
                                               : context.options.downloads->Read(),
                               .memory = OrNothing(memory),
                               .process = OrNothing(process),
                               .log_lines_lost = log::LostLines(),
                               .names = context.options.metrics_names});
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

net::Response CancelRequest(const Context& context, std::string_view id, const Caller& caller) {
  const size_t count = context.registry->Cancel(id, caller);
  if (count == 0)
    return openai::ErrorResponse(
        {.http_status = 404,
         .message = fmt::format("no open request is called '{:.200}'; it has ended, or never was; "
                                "its name is the id in its answer or its X-Request-Id",
                                id),
         .type = "invalid_request_error",
         .param = "id",
         .code = "request_not_found"});
  return JsonResponse({{"id", id}, {"object", "request"}, {"cancelled", true}, {"count", count}});
}

}  // namespace tessera::server
