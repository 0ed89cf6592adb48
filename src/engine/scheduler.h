// SPDX-License-Identifier: Apache-2.0
//
// The scheduler: what the next step computes. A pure function of owned state, so that its tests
// drive it by hand. Continuous batching with chunked prefill (Yu et al., "Orca", OSDI 2022; Agrawal
// et al., "Sarathi-Serve", OSDI 2024): every decoding sequence gets its one row first, what is left
// of the step goes to prompts, and waiting requests join when places and pages allow. While
// somebody decodes, prompts get at most `prompt_rows`, so that no step keeps a reader waiting.
//
// Prompts in one step share its rows: half of them for the one that comes first, so that it always
// advances, the rest to the others, those with the least to compute first: a short question does
// not wait for a long document.
//
// When pages run out, the running sequence that comes last gives its pages back and waits again;
// its tokens are computed anew later (the determinism rule makes that invisible). A waiting
// sequence takes place and pages from running ones of a lower priority only.
//
// Sequences with a common beginning share pages (prefix_cache.h). A newcomer whose next page a
// sequence before it is about to compute is held: it keeps its place, and computes nothing that it
// will find in the cache after the step. Only earlier ones hold later ones, so the first never
// waits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/kv_pool.h"
#include "engine/request.h"

namespace tessera::engine {

/// What the scheduler may know of a sequence. Order in the span: who comes first, by priority, then
/// those that ran before, by arrival, then the others (fair_queue.h).
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
  int32_t priority = 0;  // Ascending in the span.
  /// Decoding: guesses of the tokens after its last, which are checked when rows are to spare.
  int64_t drafts = 0;
};

struct ScheduleLimits {
  int64_t rows = 0;     // Of one step.
  int64_t running = 0;  // Sequences in the batch.
  int64_t page_tokens = 0;
  int64_t free_pages = 0;                    // Free, or only cached.
  std::span<const int32_t> page_users = {};  // [pages of the pool]: sequences that hold each page.
  int64_t logits_rows = INT64_MAX;           // Of the sequences that need all logits, together.
  int64_t prompt_rows = INT64_MAX;           // Of prompts in a step in which others decode. >= 1.
};

struct Work {
  size_t index = 0;  // In the span of views.
  int64_t rows = 0;  // Tokens [computed, computed + rows) of the sequence and its drafts.
  friend bool operator==(const Work&, const Work&) = default;
};

struct Decision {
  std::vector<size_t> preempt;  // Give pages back before anything is taken.
  std::vector<Work> work;       // By index; waiting sequences in it become running.
};

/// Requires: every view that is ready has computed < tokens and, alone, fits the pool; free_pages
/// and the pages held are the whole pool. Then the decision has work whenever a view is ready:
/// progress is certain, the first of these always advances. What is admitted may have found more
/// in the cache by the time it runs: it then computes fewer rows.
Decision Schedule(std::span<const SequenceView> views, const ScheduleLimits& limits);

}  // namespace tessera::engine
