// SPDX-License-Identifier: Apache-2.0
#include "engine/scheduler.h"

#include <algorithm>

#include "base/check.h"
#include "engine/kv_pool.h"

namespace tessera::engine {
namespace {

/// One planning pass. `rows_[i]` is what sequence i computes in the step (0 = nothing).
class Planner {
 public:
  Planner(std::span<const SequenceView> views, const ScheduleLimits& limits)
      : views_(views), limits_(limits), rows_(views.size(), 0), preempted_(views.size(), false) {
    rows_left_ = limits.rows;
    pages_left_ = limits.free_pages;
    for (const SequenceView& view : views) running_ += view.is_running ? 1 : 0;
  }

  void PlanRunning(bool decoding) {
    for (size_t i = 0; i < views_.size() && rows_left_ > 0; ++i) {
      const SequenceView& view = views_[i];
      const int64_t remaining = view.tokens - view.computed;
      if (!view.is_running || preempted_[i] || (remaining == 1) != decoding) continue;
      Give(i, std::min(remaining, rows_left_));
    }
  }

  void Admit() {
    // Pages that were just taken away are for those that run, not for newcomers.
    if (!decision_.preempt.empty()) return;
    for (size_t i = 0; i < views_.size() && rows_left_ > 0 && running_ < limits_.running; ++i) {
      const SequenceView& view = views_[i];
      if (view.is_running) continue;
      // A prompt must fit as a whole, or it would only be preempted half way.
      if (PagesFor(view.tokens, limits_.page_tokens) > pages_left_) return;
      const int64_t rows = std::min(view.tokens - view.computed, rows_left_);
      // Reserve what the rest of the prompt needs, so that the next newcomer does not take it.
      pages_left_ -= PagesFor(view.tokens, limits_.page_tokens);
      rows_[i] = rows;
      rows_left_ -= rows;
      ++running_;
    }
  }

  Decision Finish() {
    for (size_t i = 0; i < views_.size(); ++i)
      if (rows_[i] > 0) decision_.work.push_back({i, rows_[i]});
    return std::move(decision_);
  }

 private:
  int64_t NewPages(size_t i, int64_t rows) const {
    return PagesFor(views_[i].computed + rows, limits_.page_tokens) - views_[i].pages;
  }

  void Give(size_t i, int64_t rows) {
    while (NewPages(i, rows) > pages_left_) {
      const size_t victim = Youngest();
      Preempt(victim);
      if (victim == i) return;
    }
    pages_left_ -= std::max<int64_t>(NewPages(i, rows), 0);
    rows_[i] = rows;
    rows_left_ -= rows;
  }

  size_t Youngest() const {
    for (size_t i = views_.size(); i-- > 0;)
      if (views_[i].is_running && !preempted_[i]) return i;
    TESSERA_CHECK(false);  // The caller runs itself.
    return 0;
  }

  void Preempt(size_t i) {
    pages_left_ += views_[i].pages;
    if (rows_[i] > 0) {  // It had work in this step already: take that back too.
      pages_left_ += std::max<int64_t>(NewPages(i, rows_[i]), 0);
      rows_left_ += rows_[i];
      rows_[i] = 0;
    }
    preempted_[i] = true;
    --running_;
    decision_.preempt.push_back(i);
  }

  std::span<const SequenceView> views_;
  const ScheduleLimits limits_;
  std::vector<int64_t> rows_;
  std::vector<bool> preempted_;
  int64_t rows_left_ = 0;
  int64_t pages_left_ = 0;
  int64_t running_ = 0;
  Decision decision_;
};

}  // namespace

Decision Schedule(std::span<const SequenceView> views, const ScheduleLimits& limits) {
  TESSERA_CHECK(limits.rows > 0 && limits.running > 0 && limits.page_tokens > 0);
  Planner planner(views, limits);
  planner.PlanRunning(/*decoding=*/true);
  planner.PlanRunning(/*decoding=*/false);
  planner.Admit();
  return planner.Finish();
}

}  // namespace tessera::engine
