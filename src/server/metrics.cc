// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.h"

#include <vector>

#include "server/metrics_page.h"

namespace tessera::server {
namespace {

void AddState(const MetricsInput& input, MetricsPageBuilder* page) {
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

void AddCounters(const engine::Stats& stats, MetricsPageBuilder* page) {
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

/// Pages on disk, when there is such a place.
void AddPageStore(const engine::Stats& stats, MetricsPageBuilder* page) {
  if (!stats.page_store.has_value()) return;
  const engine::PageStoreStats& store = *stats.page_store;
  const auto gauge = [&](std::string name, std::string help, double value) {
    page->Gauge("kv_disk_" + name, std::move(help), value, {}, /*is_ours=*/true);
  };
  const auto counter = [&](std::string name, std::string help, int64_t value) {
    page->Counter("kv_disk_" + name + "_total", std::move(help), value, /*is_ours=*/true);
  };
  gauge("pages", "KV pages on disk.", static_cast<double>(store.pages));
  gauge("bytes", "Bytes of their files.", static_cast<double>(store.bytes));
  gauge("writable", "1 as long as pages can be written; 0 after an error.",
        store.is_writable ? 1 : 0);
  counter("hits", "KV pages that came from disk instead of being computed.", stats.store_hits);
  counter("misses", "KV pages that were neither in memory nor on disk.", stats.store_misses);
  counter("given_up", "Requests that computed what was on disk, as reading took longer.",
          stats.store_given_up);
  counter("written", "KV pages written.", store.written);
  counter("read", "KV pages read.", store.read);
  counter("corrupt", "KV pages found damaged or gone, and deleted.", store.corrupt);
  counter("dropped", "KV pages not written: the queue was full, or writing had failed.",
          store.dropped);
  counter("evictions", "KV pages deleted to keep to the quota.", store.evictions);
  page->SecondsCounter("kv_disk_write_seconds_total", "Time spent writing.", store.write_seconds);
  page->SecondsCounter("kv_disk_read_seconds_total", "Time spent reading.", store.read_seconds);
}

void AddHistograms(const engine::Stats& stats, MetricsPageBuilder* page) {
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
  // Ours alone: _total is not for histograms. The other name: metrics_compat.cc.
  page->Histogram("iteration_tokens", "Tokens computed in one step.", stats.step_tokens,
                  /*is_ours=*/true);
}

void AddForms(const MetricsInput& input, MetricsPageBuilder* page) {
  const FormCounters::Counts& forms = input.forms;
  const text::GrammarCache::Counters& grammars = input.grammars;
  page->Counters(
      "structured_outputs_total",
      "Answers that were to have a form, by how they ended; invalid: a bug of the server.",
      "result",
      {{"valid", forms.valid},
       {"cut", forms.cut},
       {"invalid", forms.invalid},
       {"skipped", forms.skipped}},
      /*is_ours=*/true);
  page->Counters(
      "grammar_requests_total", "Forms that requests asked for, by what it took.", "result",
      {{"cached", grammars.hits}, {"compiled", grammars.compiled}, {"refused", grammars.refused}},
      /*is_ours=*/true);
  page->Gauge("grammar_cache_entries", "Compiled forms that are kept.",
              static_cast<double>(grammars.grammars), {}, /*is_ours=*/true);
  page->Counter("masked_tokens_total", "Tokens drawn under the mask of a form.",
                input.stats.masked_tokens, /*is_ours=*/true);
  page->Counter("late_masks_total", "Rows lost because the mask came after the logits.",
                input.stats.late_masks, /*is_ours=*/true);
}

}  // namespace

std::string MetricsPage(const MetricsInput& input) {
  MetricsPageBuilder page(input.model_name);
  AddState(input, &page);
  AddCounters(input.stats, &page);
  AddPageStore(input.stats, &page);
  page.Counters("request_warnings_total", "Warnings that answers carried, by code.", "code",
                input.warnings, /*is_ours=*/true);
  AddForms(input, &page);
  AddHistograms(input.stats, &page);
  AddServing(input, &page);
  AddProcess(input, &page);
  if (input.download.has_value()) AddDownload(*input.download, &page);
  if (input.names.vllm) AddVllmNames(input, &page);
  if (input.names.tgi) AddTgiNames(input, &page);
  if (input.names.llamacpp) AddLlamaCppNames(input, &page);
  if (input.names.sglang) AddSglangNames(input, &page);
  return std::move(page).Finish(input.names.vllm);
}

std::string DownloadPage(const DownloadFigures& download) {
  MetricsPageBuilder page("");
  AddDownload(download, &page);
  return std::move(page).Finish(/*with_twins=*/false);
}

}  // namespace tessera::server
