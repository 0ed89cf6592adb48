// SPDX-License-Identifier: Apache-2.0
//
// The scheduler: what the next step computes. A pure function of owned state, so that its tests
// drive it by hand. Continuous batching with chunked prefill (Yu et al., "Orca", OSDI 2022; Agrawal
// et al., "Sarathi-Serve", OSDI 2024): every decoding sequence gets its one row first, what is left
// of the step goes to prompts in order of arrival, and waiting requests join when places and pages
// allow. When pages run out, the youngest running sequence gives its pages back and waits again;
// its tokens are computed anew later (the determinism rule makes that invisible).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/request.h"

namespace tessera::engine {

/// What the scheduler may know of a sequence. Order in the span = order of arrival.
struct SequenceView {
  RequestId id = 0;
  bool is_running = false;
  int64_t tokens = 0;    // Known tokens: prompt and generated.
  int64_t computed = 0;  // Of these, how many have their KV. < tokens.
  int64_t pages = 0;     // Pages held.
};

struct ScheduleLimits {
  int64_t rows = 0;     // Of one step.
  int64_t running = 0;  // Sequences in the batch.
  int64_t page_tokens = 0;
  int64_t free_pages = 0;
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

/// Requires: every view has computed < tokens and, alone, fits the pool. Then the decision has work
/// whenever there is a view: progress is certain, the oldest sequence always advances.
Decision Schedule(std::span<const SequenceView> views, const ScheduleLimits& limits);

}  // namespace tessera::engine
