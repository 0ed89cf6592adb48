// SPDX-License-Identifier: Apache-2.0
#include "engine/scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace tessera::engine {
namespace {

/// One planning pass. `rows_[i]` is what sequence i computes in the step (0 = nothing).
class Planner {
 public:
  Planner(std::span<const SequenceView> views, const ScheduleLimits& limits)
      : views_(views), limits_(limits), rows_(views.size(), 0), preempted_(views.size(), false) {
    rows_left_ = limits.rows;
    logits_rows_left_ = limits.logits_rows;
    pages_left_ = limits.free_pages;
    for (const SequenceView& view : views) running_ += view.is_running ? 1 : 0;
  }

  void PlanRunning(bool decoding) {
    for (size_t i = 0; i < views_.size() && rows_left_ > 0; ++i) {
      const SequenceView& view = views_[i];
      const int64_t remaining = view.tokens - view.computed;
      if (!view.is_running || !view.is_ready || preempted_[i]) continue;
      if ((remaining == 1) != decoding) continue;
      Give(i, std::min(remaining, RowsFor(view)));
    }
  }

  void Admit() {
    // Pages that were just taken away are for those that run, not for newcomers.
    if (!decision_.preempt.empty()) return;
    for (size_t i = 0; i < views_.size() && rows_left_ > 0 && running_ < limits_.running; ++i) {
      const SequenceView& view = views_[i];
      if (view.is_running || !view.is_ready) continue;
      // A prompt must fit as a whole, or it would only be preempted half way. Shared pages that
      // nobody uses now are there, but cannot be given up any more.
      const int64_t pages =
          PagesFor(view.tokens, limits_.page_tokens) - view.shared_pages + view.idle_pages;
      if (pages > pages_left_) return;
      // Reserve what the rest of the prompt needs, so that the next newcomer does not take it.
      pages_left_ -= pages;
      const int64_t rows =
          IsBeingComputed(i) ? 0 : std::min(view.tokens - view.computed, RowsFor(view));
      TakeRows(i, rows);
      ++running_;
    }
  }

  /// Nothing was planned although something is ready: sequences that wait hold all pages or places.
  /// They are preempted, youngest first, until the oldest that is ready has both.
  void MakeRoom() {
    if (rows_left_ < limits_.rows) return;
    for (size_t i = 0; i < views_.size(); ++i) {
      if (!views_[i].is_ready || (views_[i].is_running && !preempted_[i])) continue;
      // What it shares may become idle meanwhile: as if it shared nothing.
      const int64_t pages = PagesFor(views_[i].tokens, limits_.page_tokens);
      while (running_ > 0 && (pages > pages_left_ || running_ >= limits_.running))
        Preempt(Youngest());
      TakeRows(i, std::min(views_[i].tokens - views_[i].computed, RowsFor(views_[i])));
      return;
    }
  }

  Decision Finish() {
    for (size_t i = 0; i < views_.size(); ++i)
      if (rows_[i] > 0) decision_.work.push_back({i, rows_[i]});
    return std::move(decision_);
  }

 private:
  int64_t RowsFor(const SequenceView& view) const {
    return view.needs_all_logits ? std::min(rows_left_, logits_rows_left_) : rows_left_;
  }

  void TakeRows(size_t i, int64_t rows) {
    rows_[i] = rows;
    rows_left_ -= rows;
    if (views_[i].needs_all_logits) logits_rows_left_ -= rows;
  }

  int64_t NewPages(size_t i, int64_t rows) const {
    return PagesFor(views_[i].computed + rows, limits_.page_tokens) - std::ssize(views_[i].pages);
  }

  /// Does an older sequence that runs in this step have the next page of `i` before it?
  bool IsBeingComputed(size_t i) const {
    const SequenceView& view = views_[i];
    const int64_t page = view.shared_pages;
    if (page >= std::ssize(view.page_keys)) return false;
    const auto index = static_cast<size_t>(page);
    for (size_t j = 0; j < i; ++j) {
      const SequenceView& other = views_[j];
      if (rows_[j] > 0 && page < std::ssize(other.page_keys) &&
          other.computed < (page + 1) * limits_.page_tokens &&
          other.page_keys[index] == view.page_keys[index])
        return true;
    }
    return false;
  }

  void Give(size_t i, int64_t rows) {
    if (rows == 0) return;
    while (NewPages(i, rows) > pages_left_) {
      const size_t victim = Youngest();
      Preempt(victim);
      if (victim == i) return;
    }
    pages_left_ -= std::max<int64_t>(NewPages(i, rows), 0);
    TakeRows(i, rows);
  }

  size_t Youngest() const {
    for (size_t i = views_.size(); i-- > 0;)
      if (views_[i].is_running && !preempted_[i]) return i;
    TESSERA_CHECK(false);  // The caller runs itself.
    return 0;
  }

  void Preempt(size_t i) {
    ReturnPages(i);
    if (rows_[i] > 0) {  // It had work in this step already: take that back too.
      pages_left_ += std::max<int64_t>(NewPages(i, rows_[i]), 0);
      TakeRows(i, -rows_[i]);
      rows_[i] = 0;
    }
    preempted_[i] = true;
    --running_;
    decision_.preempt.push_back(i);
  }

  /// A page is there again when its last user gives it back.
  void ReturnPages(size_t i) {
    if (page_users_.empty())
      page_users_.assign(limits_.page_users.begin(), limits_.page_users.end());
    for (const PageId page : views_[i].pages) {
      int32_t& users = page_users_[static_cast<size_t>(page)];
      TESSERA_CHECK(users > 0);
      if (--users == 0) ++pages_left_;
    }
  }

  std::span<const SequenceView> views_;
  const ScheduleLimits limits_;
  std::vector<int32_t> page_users_;  // Without those preempted; empty until one is.
  std::vector<int64_t> rows_;
  std::vector<bool> preempted_;
  int64_t rows_left_ = 0;
  int64_t logits_rows_left_ = 0;
  int64_t pages_left_ = 0;
  int64_t running_ = 0;
  Decision decision_;
};

}  // namespace

Decision Schedule(std::span<const SequenceView> views, const ScheduleLimits& limits) {
  TESSERA_CHECK(limits.rows > 0 && limits.running > 0 && limits.page_tokens > 0 &&
                limits.logits_rows > 0);
  Planner planner(views, limits);
  planner.PlanRunning(/*decoding=*/true);
  planner.PlanRunning(/*decoding=*/false);
  planner.Admit();
  planner.MakeRoom();
  return planner.Finish();
}

}  // namespace tessera::engine
