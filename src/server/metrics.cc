// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <vector>

namespace tessera::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

/// Collects families under our prefix; Finish() adds the twins.
class Page {
 public:
  explicit Page(std::string_view model_name) : model_name_(model_name) {}

  void Gauge(std::string name, std::string help, double value, Labels labels = {},
             bool is_ours = false) {
    ClientMetric metric = New(std::move(labels));
    metric.gauge.value = value;
    if (is_ours) ours_.push_back(name);
    Add(std::move(name), std::move(help), MetricType::Gauge, {std::move(metric)});
  }

  void Counter(std::string name, std::string help, int64_t value, bool is_ours = false) {
    if (is_ours) ours_.push_back(name);
    Add(std::move(name), std::move(help), MetricType::Counter, {Count(value, {})});
  }

  /// One series for each value of `label`; without a twin where `is_ours`.
  void Counters(std::string name, std::string help, std::string label,
                const std::vector<std::pair<std::string, int64_t>>& values, bool is_ours = false) {
    std::vector<ClientMetric> metrics;
    for (const auto& [word, value] : values) metrics.push_back(Count(value, {{label, word}}));
    if (is_ours) ours_.push_back(name);
    Add(std::move(name), std::move(help), MetricType::Counter, std::move(metrics));
  }

  void Histogram(std::string name, std::string help, const engine::Histogram& histogram) {
    ClientMetric metric = New({});
    uint64_t cumulative = 0;
    for (size_t i = 0; i < histogram.counts().size(); ++i) {
      cumulative += static_cast<uint64_t>(histogram.counts()[i]);
      const double bound = i < histogram.bounds().size() ? histogram.bounds()[i]
                                                         : std::numeric_limits<double>::infinity();
      metric.histogram.bucket.push_back({cumulative, bound});
    }
    metric.histogram.sample_count = static_cast<uint64_t>(histogram.count());
    metric.histogram.sample_sum = histogram.sum();
    Add(std::move(name), std::move(help), MetricType::Histogram, {std::move(metric)});
  }

  std::string Finish(bool vllm_names) && {
    std::vector<MetricFamily> page;
    for (const MetricFamily& family : families_) {
      page.push_back(family);
      page.back().name = "tessera_" + family.name;
    }
    if (vllm_names) {
      for (MetricFamily& family : families_) {
        if (std::ranges::find(ours_, family.name) != ours_.end()) continue;
        family.name = "vllm:" + family.name;
        page.push_back(std::move(family));
      }
    }
    return prometheus::TextSerializer().Serialize(page);
  }

 private:
  ClientMetric New(Labels labels) const {
    ClientMetric metric;
    metric.label = {{"model_name", model_name_}};
    metric.label.insert(metric.label.end(), labels.begin(), labels.end());
    return metric;
  }
  ClientMetric Count(int64_t value, Labels labels) const {
    ClientMetric metric = New(std::move(labels));
    metric.counter.value = static_cast<double>(value);
    return metric;
  }
  void Add(std::string name, std::string help, MetricType type, std::vector<ClientMetric> metrics) {
    families_.push_back({std::move(name), std::move(help), type, std::move(metrics)});
  }

  const std::string model_name_;
  std::vector<MetricFamily> families_;
  std::vector<std::string> ours_;  // Names without a twin.
};

void AddState(const MetricsInput& input, Page* page) {
  const engine::Stats& stats = input.stats;
  page->Gauge("num_requests_running", "Sequences in the batch.",
              static_cast<double>(stats.running));
  page->Gauge("num_requests_waiting", "Requests waiting for a place in the batch.",
              static_cast<double>(stats.waiting));
  const double total = static_cast<double>(stats.kv_pages_total);
  page->Gauge("kv_cache_usage_perc", "Share of the KV pages that sequences use, 0 to 1.",
              total > 0 ? static_cast<double>(stats.kv_pages_used) / total : 0);
  page->Gauge("prefix_cache_pages", "KV pages in the prefix cache, in use or not.",
              static_cast<double>(stats.prefix_cache_pages), {}, /*is_ours=*/true);
  page->Gauge("queue_admissions_per_second", "Requests that got a place lately, a second.",
              stats.admissions_per_second, {}, /*is_ours=*/true);
  page->Gauge("prompt_rows_beside_decoding",
              "Prompt tokens that a step may have while others decode, by --target-itl-ms.",
              static_cast<double>(stats.prompt_rows), {}, /*is_ours=*/true);
  const auto cost = [&](std::string name, std::string help, double seconds) {
    page->Gauge("step_cost_" + name + "_seconds", std::move(help), seconds, {}, /*is_ours=*/true);
  };
  cost("fixed", "Learnt time of a step, whatever is in it.", stats.step_cost[0]);
  cost("row", "Learnt time of each row of a step.", stats.step_cost[1]);
  cost("position", "Learnt time of each position that a row looks at.", stats.step_cost[2]);
  page->Gauge("cache_config_info", "Size of the KV cache, as labels.", 1,
              {{"block_size", std::to_string(input.shape.page_tokens)},
               {"num_gpu_blocks", std::to_string(input.shape.page_count)}});
}

void AddCounters(const engine::Stats& stats, Page* page) {
  page->Counter("prompt_tokens_total", "Prompt tokens computed or found in the cache.",
                stats.prompt_tokens);
  page->Counter("generation_tokens_total", "Tokens generated.", stats.generation_tokens);
  page->Counters("request_success_total", "Requests that ended, by reason.", "finished_reason",
                 {{"stop", stats.finished_stop},
                  {"length", stats.finished_length},
                  {"abort", stats.finished_cancelled},
                  {"error", stats.finished_error}});
  page->Counter("num_preemptions_total", "Times a sequence gave its pages back to another.",
                stats.preemptions);
  page->Counter("prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.",
                stats.prefix_cache_queries);
  page->Counter("prefix_cache_hits_total", "Prompt tokens found there.", stats.prefix_cache_hits);
  page->Counter("prefix_cache_evictions_total", "Pages of the prefix cache given up for others.",
                stats.prefix_cache_evictions, /*is_ours=*/true);
  page->Counter("spec_decode_num_drafts_total", "Times that following tokens were guessed.",
                stats.draft_steps);
  page->Counter("spec_decode_num_draft_tokens_total", "Tokens guessed.", stats.draft_tokens);
  page->Counter("spec_decode_num_accepted_tokens_total", "Guessed tokens that were right.",
                stats.draft_accepted);
  page->Counter("engine_steps_total", "Runs of the model.", stats.steps);
  page->Counter("requests_rejected_total", "Requests refused because the queue was full.",
                stats.rejected_queue_full);
}

void AddHistograms(const engine::Stats& stats, Page* page) {
  page->Histogram("time_to_first_token_seconds", "Arrival of a request to its first token.",
                  stats.time_to_first_token);
  page->Histogram("inter_token_latency_seconds", "Time between two tokens of a sequence.",
                  stats.inter_token_latency);
  page->Histogram("e2e_request_latency_seconds", "Arrival of a request to its end.",
                  stats.e2e_latency);
  page->Histogram("request_queue_time_seconds", "Arrival to first scheduled.", stats.queue_time);
  page->Histogram("request_prefill_time_seconds", "First scheduled to first token.",
                  stats.prefill_time);
  page->Histogram("request_decode_time_seconds", "First token to last.", stats.decode_time);
  page->Histogram("request_inference_time_seconds", "First scheduled to last token.",
                  stats.inference_time);
  page->Histogram("request_prompt_tokens", "Prompt tokens of a request.",
                  stats.request_prompt_tokens);
  page->Histogram("request_generation_tokens", "Tokens generated for a request.",
                  stats.request_generation_tokens);
  page->Histogram("request_params_max_tokens", "The max_tokens of a request.",
                  stats.request_max_tokens);
  page->Histogram("iteration_tokens_total", "Tokens computed in one step.", stats.step_tokens);
}

}  // namespace

std::string MetricsPage(const MetricsInput& input) {
  Page page(input.model_name);
  AddState(input, &page);
  AddCounters(input.stats, &page);
  page.Counters("request_warnings_total", "Warnings that answers carried, by code.", "code",
                input.warnings, /*is_ours=*/true);
  AddHistograms(input.stats, &page);
  return std::move(page).Finish(input.vllm_names);
}

}  // namespace tessera::server
