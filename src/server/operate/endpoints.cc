// SPDX-License-Identifier: Apache-2.0
#include "server/operate/endpoints.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "server/access/access_control.h"
#include "server/openai/error.h"
#include "server/openai/generation_fields.h"
#include "server/operate/fields.h"
#include "server/service_control.h"

namespace tessera::server::operate {
namespace {

json::Object EngineStats(const Context& context, const engine::Stats& stats) {
  json::Object engine{{"running", stats.running},
                      {"waiting", stats.waiting},
                      {"draining", context.engine->draining()},
                      {"stage", engine::StageName(context.engine->stage().stage)},
                      {"steps", stats.steps},
                      {"prompt_tokens", stats.prompt_tokens},
                      {"generation_tokens", stats.generation_tokens},
                      {"admissions_per_second", stats.admissions_per_second},
                      {"rejected_queue_full", stats.rejected_queue_full},
                      {"preemptions", stats.preemptions}};
  engine["finished"] = json::Object{{"stop", stats.finished_stop},
                                    {"length", stats.finished_length},
                                    {"cancelled", stats.finished_cancelled},
                                    {"error", stats.finished_error}};
  return engine;
}

json::Object KvStats(const Context& context, const engine::Stats& stats) {
  return {{"pages_total", stats.kv_pages_total},
          {"pages_used", stats.kv_pages_used},
          {"pages_cached", stats.prefix_cache_pages},
          {"page_tokens", context.engine->shape().page_tokens},
          {"cache_queries", stats.prefix_cache_queries},
          {"cache_hits", stats.prefix_cache_hits},
          {"cache_evictions", stats.prefix_cache_evictions}};
}

json::Object HttpStats(const net::ServerStats& stats) {
  return {{"connections_open", stats.connections_open},
          {"connections_accepted", stats.connections_accepted},
          {"connections_refused", stats.connections_refused},
          {"requests", stats.requests},
          {"requests_open", stats.requests_open},
          {"disconnects", stats.disconnects}};
}

json::Value LimitOrNull(int64_t limit) {
  return limit == 0 ? json::Value(nullptr) : json::Value(limit);
}

json::Object KeyStats(const AccessControl::Entry& entry) {
  const ApiKey& key = *entry.key;
  json::Array scopes;
  for (int i = 0; i < access::kScopeCount; ++i)
    if (key.Has(static_cast<Scope>(i)))
      scopes.emplace_back(access::ScopeName(static_cast<Scope>(i)));
  const KeyUsage::Counters counters = entry.usage->counters();
  json::Object stats{{"name", key.name},
                     {"rpm", LimitOrNull(key.limits.requests_per_minute)},
                     {"tpm", LimitOrNull(key.limits.tokens_per_minute)},
                     {"concurrency", LimitOrNull(key.limits.concurrency)},
                     {"requests", counters.requests},
                     {"refused", counters.refused},
                     {"open", counters.open},
                     {"prompt_tokens", counters.prompt_tokens},
                     {"completion_tokens", counters.completion_tokens}};
  stats["scopes"] = std::move(scopes);
  stats["priority"] = key.priority.has_value() ? json::Value(*key.priority) : json::Value(nullptr);
  stats["expires"] = key.expires.has_value() ? json::Value(access::FormatUtcTime(*key.expires))
                                             : json::Value(nullptr);
  return stats;
}

openai::ApiError NotConfirmed(const ServedModel& model) {
  return openai::BadField(
      "confirm",
      fmt::format("a drain cannot be taken back: confirm it with the model's name, {{\"confirm\": "
                  "\"{}\"}}",
                  model.id));
}

}  // namespace

net::Response HandleStats(const Context& context) {
  const engine::Stats stats = context.engine->stats();
  json::Object body{{"object", "stats"},
                    {"model", context.model.id},
                    {"version", TESSERA_VERSION},
                    {"uptime_seconds", Seconds(context.clock->Now() - context.started)}};
  body["engine"] = EngineStats(context, stats);
  body["kv"] = KvStats(context, stats);
  body["http"] = HttpStats(context.http_stats());
  json::Array keys;
  for (const AccessControl::Entry& entry : context.access->entries())
    keys.push_back(KeyStats(entry));
  body["keys"] = std::move(keys);
  return net::Response::Json(200, json::Serialize(body));
}

void HandleDrain(const Context& context, const net::Request& request, const Reply& reply) {
  const auto refuse = [&](const openai::ApiError& error) {
    (void)reply.Send(openai::ErrorResponse(error));
  };
  const std::string_view text = request.body.empty() ? std::string_view("{}") : request.body;
  const auto checked =
      openai::ReadBody(text, AdminFields(), kDrain, /*needs_model=*/false, context.model);
  if (!checked.has_value()) return refuse(checked.error());
  if (!checked->warnings.empty()) {
    const openai::Warning& first = checked->warnings.front();
    return refuse(openai::BadField(first.param, first.message));
  }
  const json::Value* confirm = json::Find(checked->body, "confirm");
  if (confirm == nullptr || !IsNameOf(context.model, confirm->get_string()))
    return refuse(NotConfirmed(context.model));
  Duration patience = context.options.drain_patience;
  if (json::Find(checked->body, "timeout") != nullptr)
    patience = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(openai::NumberOr(checked->body, "timeout", 0)));
  const engine::Stats stats = context.engine->stats();
  const int64_t open = stats.running + stats.waiting;
  const TimePoint begin = context.clock->Now();
  const Status started = context.control->StartDrain(
      patience, [reply, open, begin, clock = context.clock](const Status& result) {
        const json::Object report{
            {"object", "drain"},
            {"finished", result.ok()},
            {"sequences", open},
            {"seconds", Seconds(clock->Now() - begin)},
            {"message", result.ok() ? "all that ran has finished" : result.message()}};
        (void)reply.Send(net::Response::Json(200, json::Serialize(report)));
      });
  if (!started.ok()) refuse(openai::FromStatus(Unavailable(started.ToString())));
}

net::Response HandleReload(const Context& context) {
  const auto report = context.control->Reload();
  if (!report.has_value())
    return openai::ErrorResponse(openai::FromStatus(
        FailedPrecondition("nothing was changed: " + report.error().ToString())));
  return net::Response::Json(
      200, json::Serialize(json::Object{{"object", "reload"},
                                        {"keys", report->keys},
                                        {"key_file", report->has_key_file},
                                        {"certificate", report->has_certificate}}));
}

}  // namespace tessera::server::operate
