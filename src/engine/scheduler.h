// SPDX-License-Identifier: Apache-2.0
//
// The scheduler: what the next step computes. A pure function of owned state, so that its tests
// drive it by hand. Continuous batching with chunked prefill (Yu et al., "Orca", OSDI 2022; Agrawal
// et al., "Sarathi-Serve", OSDI 2024): every decoding sequence gets its one row first, what is left
// of the step goes to prompts in order of arrival, and waiting requests join when places and pages
// allow. When pages run out, the youngest running sequence gives its pages back and waits again;
// its tokens are computed anew later (the determinism rule makes that invisible).
//
// Sequences with a common beginning share pages (prefix_cache.h). A newcomer whose next page an
// older sequence is about to compute is held: it keeps its place, and computes nothing that it will
// find in the cache after the step. Only older ones hold younger ones, so the oldest never waits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/kv_pool.h"
#include "engine/request.h"

namespace tessera::engine {

/// What the scheduler may know of a sequence. Order in the span = order of arrival.
struct SequenceView {
  RequestId id = 0;
  bool is_running = false;
  int64_t tokens = 0;    // Known tokens: prompt and generated.
  int64_t computed = 0;  // Of these, how many have their KV, waiting: in the cache. < tokens.
  std::span<const PageId> pages = {};  // Pages held; none when waiting.
  // Waiting: whole pages that it will share, and how many of these nobody uses now.
  int64_t shared_pages = 0;
  int64_t idle_pages = 0;
  /// [whole pages of tokens]: equal keys mean the same tokens up to the end of that page. Empty: it
  /// shares with nobody.
  std::span<const uint64_t> page_keys = {};
  /// Each of its rows wants logits, which take memory: at most logits_rows in a step.
  bool needs_all_logits = false;
  /// False: it waits for other sequences of its beam search, or for its mask, with or without
  /// pages. Only then may computed be tokens.
  bool is_ready = true;
};

struct ScheduleLimits {
  int64_t rows = 0;     // Of one step.
  int64_t running = 0;  // Sequences in the batch.
  int64_t page_tokens = 0;
  int64_t free_pages = 0;                    // Free, or only cached.
  std::span<const int32_t> page_users = {};  // [pages of the pool]: sequences that hold each page.
  int64_t logits_rows = INT64_MAX;           // Of the sequences that need all logits, together.
};

struct Work {
  size_t index = 0;  // In the span of views.
  int64_t rows = 0;  // Tokens [computed, computed + rows) of the sequence.
  friend bool operator==(const Work&, const Work&) = default;
};

struct Decision {
  std::vector<size_t> preempt;  // Give pages back before anything is taken.
  std::vector<Work> work;       // In order of arrival; waiting sequences in it become running.
};

/// Requires: every view that is ready has computed < tokens and, alone, fits the pool; free_pages
/// and the pages held are the whole pool. Then the decision has work whenever a view is ready:
/// progress is certain, the oldest of these always advances. What is admitted may have found more
/// in the cache by the time it runs: it then computes fewer rows.
Decision Schedule(std::span<const SequenceView> views, const ScheduleLimits& limits);

}  // namespace tessera::engine
