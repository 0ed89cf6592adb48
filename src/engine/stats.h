// SPDX-License-Identifier: Apache-2.0
//
// What the engine counts. Plain values, copied out as one consistent snapshot (Engine::stats()).
// Histograms carry the buckets that dashboards of LLM servers expect, with finer low ones.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/clock.h"
#include "base/histogram.h"
#include "engine/page_store.h"
#include "engine/request.h"

namespace tessera::engine {

using tessera::Histogram;

std::span<const double> LatencyBounds();  // Seconds, 1 ms to 2 h.
std::span<const double> TokenBounds();    // Tokens, 1-2-5 to 2 million.
std::span<const double> BatchBounds();    // Tokens of a step, powers of two.

struct Stats {
  // Gauges.
  int64_t running = 0;
  int64_t waiting = 0;
  int64_t kv_pages_used = 0;  // By sequences; those that are only cached can be had at any time.
  int64_t kv_pages_total = 0;
  int64_t prefix_cache_pages = 0;            // In the prefix cache, used or not.
  double admissions_per_second = 0;          // Of the last requests that got a place.
  int64_t prompt_rows = 0;                   // Rows for prompts beside decoding, by target_itl.
  std::array<double, 3> step_cost{};         // Seconds: of a step, a row, a position looked at.
  std::optional<TimePoint> last_step;        // End of the last step that succeeded.
  std::optional<PageStoreStats> page_store;  // Nothing: there is none.
  // Counters.
  int64_t prompt_tokens = 0;  // Prompt tokens of requests that were prefilled.
  int64_t generation_tokens = 0;
  int64_t finished_stop = 0;
  int64_t finished_length = 0;
  int64_t finished_cancelled = 0;  // Cancelled and past the deadline.
  int64_t finished_error = 0;
  int64_t preemptions = 0;
  int64_t prefix_cache_queries = 0;    // Tokens.
  int64_t prefix_cache_hits = 0;       // Tokens.
  int64_t prefix_cache_evictions = 0;  // Pages.
  int64_t store_hits = 0;              // Pages that came from the store,
  int64_t store_misses = 0;            // that it did not have either when they were asked for.
  int64_t store_given_up = 0;  // Requests that computed what the store had: it was too slow.
  int64_t draft_steps = 0;     // Guesses of the tokens that follow one sequence: how often,
  int64_t draft_tokens = 0;    // how many tokens,
  int64_t draft_accepted = 0;  // and how many of these were right.
  int64_t steps = 0;
  int64_t masked_tokens = 0;  // Sampled under a mask.
  int64_t late_masks = 0;     // Rows lost because the mask came later.
  int64_t rejected_queue_full = 0;
  // Seconds.
  Histogram time_to_first_token{LatencyBounds()};
  Histogram inter_token_latency{LatencyBounds()};
  Histogram e2e_latency{LatencyBounds()};
  Histogram queue_time{LatencyBounds()};
  Histogram prefill_time{LatencyBounds()};
  Histogram decode_time{LatencyBounds()};
  Histogram inference_time{LatencyBounds()};
  // Tokens.
  Histogram request_prompt_tokens{TokenBounds()};
  Histogram request_generation_tokens{TokenBounds()};
  Histogram request_max_tokens{TokenBounds()};
  Histogram step_tokens{BatchBounds()};
};

/// Counts a request that ended. Latency and length histograms take answered requests only, so that
/// those that went away do not colour them.
void CountFinish(const Request& request, const Finish& finish, TimePoint now, Stats* stats);

}  // namespace tessera::engine
