// SPDX-License-Identifier: Apache-2.0
//
// Names of other servers for what we count: what their dashboards show and we know. A metric whose
// meaning would differ is left out rather than filled with something similar.
#include <fmt/format.h>

#include <map>
#include <tuple>

#include "server/metrics_page.h"

namespace tessera::server {
namespace {

using Kind = MetricsPageBuilder::Kind;

double Ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

double AsDouble(int64_t value) {
  return static_cast<double>(value);
}

int64_t Succeeded(const engine::Stats& stats) {
  return stats.finished_stop + stats.finished_length;
}

double UsedTokens(const MetricsInput& input) {
  return AsDouble(input.stats.kv_pages_used * input.shape.page_tokens);
}

}  // namespace

void AddVllmNames(const MetricsInput& input, MetricsPageBuilder* page) {
  page->ForeignHistogram("vllm:iteration_tokens_total", "Tokens computed in one step.",
                         input.stats.step_tokens, page->ModelLabel());
  // By class of status, as there.
  std::map<std::tuple<std::string, std::string, std::string>, int64_t> classes;
  for (const auto& [kind, count] : input.serving.answers)
    classes[{kind.route, kind.method, fmt::format("{}xx", kind.status / 100)}] += count;
  for (const auto& [labels, count] : classes)
    page->Foreign("http_requests_total", "HTTP answers by handler, method and class of status.",
                  Kind::Counter, AsDouble(count),
                  {{"handler", std::get<0>(labels)},
                   {"method", std::get<1>(labels)},
                   {"status", std::get<2>(labels)}});
}

void AddTgiNames(const MetricsInput& input, MetricsPageBuilder* page) {
  const engine::Stats& stats = input.stats;
  page->Foreign("tgi_request_count", "Requests that ended.", Kind::Counter,
                AsDouble(Succeeded(stats) + stats.finished_cancelled + stats.finished_error));
  page->Foreign("tgi_request_success", "Requests that were answered.", Kind::Counter,
                AsDouble(Succeeded(stats)));
  page->Foreign("tgi_request_failure", "Requests that were not.", Kind::Counter,
                AsDouble(stats.finished_cancelled), {{"err", "dropped"}});
  page->Foreign("tgi_request_failure", "Requests that were not.", Kind::Counter,
                AsDouble(stats.finished_error), {{"err", "generation"}});
  page->Foreign("tgi_request_failure", "Requests that were not.", Kind::Counter,
                AsDouble(stats.rejected_queue_full), {{"err", "overloaded"}});
  page->Foreign("tgi_queue_size", "Requests waiting.", Kind::Gauge, AsDouble(stats.waiting));
  page->Foreign("tgi_batch_current_size", "Sequences in the batch.", Kind::Gauge,
                AsDouble(stats.running));
  page->ForeignHistogram("tgi_request_duration", "Arrival to end, seconds.", stats.e2e_latency);
  page->ForeignHistogram("tgi_request_inference_duration",
                         "First scheduled to last token, seconds.", stats.inference_time);
  page->ForeignHistogram("tgi_request_queue_duration", "Arrival to first scheduled, seconds.",
                         stats.queue_time);
  page->ForeignHistogram("tgi_request_input_length", "Prompt tokens.", stats.request_prompt_tokens);
  page->ForeignHistogram("tgi_request_generated_tokens", "Tokens generated.",
                         stats.request_generation_tokens);
  page->ForeignHistogram("tgi_request_max_new_tokens", "Tokens asked for.",
                         stats.request_max_tokens);
}

void AddLlamaCppNames(const MetricsInput& input, MetricsPageBuilder* page) {
  const engine::Stats& stats = input.stats;
  const double prompt_seconds = stats.prefill_time.sum();
  const double predicted_seconds = stats.decode_time.sum();
  page->Foreign("llamacpp:prompt_tokens_total", "Prompt tokens.", Kind::Counter,
                AsDouble(stats.prompt_tokens));
  page->Foreign("llamacpp:prompt_seconds_total", "Time that answered prompts took.", Kind::Counter,
                prompt_seconds);
  page->Foreign("llamacpp:tokens_predicted_total", "Tokens generated.", Kind::Counter,
                AsDouble(stats.generation_tokens));
  page->Foreign("llamacpp:tokens_predicted_seconds_total", "Time that answers took.", Kind::Counter,
                predicted_seconds);
  page->Foreign("llamacpp:n_decode_total", "Runs of the model.", Kind::Counter,
                AsDouble(stats.steps));
  page->Foreign("llamacpp:prompt_tokens_seconds", "Prompt tokens per second, of answered requests.",
                Kind::Gauge, Ratio(stats.request_prompt_tokens.sum(), prompt_seconds));
  page->Foreign("llamacpp:predicted_tokens_seconds",
                "Tokens generated per second, of answered requests.", Kind::Gauge,
                Ratio(stats.request_generation_tokens.sum(), predicted_seconds));
  page->Foreign("llamacpp:requests_processing", "Sequences in the batch.", Kind::Gauge,
                AsDouble(stats.running));
  page->Foreign("llamacpp:requests_deferred", "Requests waiting.", Kind::Gauge,
                AsDouble(stats.waiting));
  page->Foreign("llamacpp:kv_cache_usage_ratio", "Share of the KV pages in use.", Kind::Gauge,
                Ratio(AsDouble(stats.kv_pages_used), AsDouble(stats.kv_pages_total)));
  page->Foreign("llamacpp:kv_cache_tokens", "Tokens of the KV pages in use.", Kind::Gauge,
                UsedTokens(input));
}

void AddSglangNames(const MetricsInput& input, MetricsPageBuilder* page) {
  const engine::Stats& stats = input.stats;
  const auto label = page->ModelLabel();
  const auto gauge = [&](std::string name, std::string help, double value) {
    page->Foreign("sglang:" + std::move(name), std::move(help), Kind::Gauge, value, label);
  };
  const auto counter = [&](std::string name, std::string help, int64_t value) {
    page->Foreign("sglang:" + std::move(name), std::move(help), Kind::Counter, AsDouble(value),
                  label);
  };
  const auto histogram = [&](std::string name, std::string help, const engine::Histogram& values) {
    page->ForeignHistogram("sglang:" + std::move(name), std::move(help), values, label);
  };
  gauge("num_running_reqs", "Sequences in the batch.", AsDouble(stats.running));
  gauge("num_queue_reqs", "Requests waiting.", AsDouble(stats.waiting));
  gauge("num_used_tokens", "Tokens of the KV pages in use.", UsedTokens(input));
  gauge("token_usage", "Share of the KV pages in use.",
        Ratio(AsDouble(stats.kv_pages_used), AsDouble(stats.kv_pages_total)));
  gauge("cache_hit_rate", "Share of prompt tokens found in the prefix cache.",
        Ratio(AsDouble(stats.prefix_cache_hits), AsDouble(stats.prefix_cache_queries)));
  counter("prompt_tokens_total", "Prompt tokens.", stats.prompt_tokens);
  counter("generation_tokens_total", "Tokens generated.", stats.generation_tokens);
  histogram("time_to_first_token_seconds", "Arrival to first token.", stats.time_to_first_token);
  histogram("inter_token_latency_seconds", "Time between two tokens.", stats.inter_token_latency);
  histogram("e2e_request_latency_seconds", "Arrival to end.", stats.e2e_latency);
}

}  // namespace tessera::server
