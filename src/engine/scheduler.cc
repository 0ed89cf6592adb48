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
      : views_(views),
        limits_(limits),
        page_users_(limits.page_users.begin(), limits.page_users.end()),
        rows_(views.size(), 0),
        preempted_(views.size(), false),
        rows_left_(limits.rows),
        logits_rows_left_(limits.logits_rows),
        pages_left_(limits.free_pages) {
    for (const SequenceView& view : views) running_ += view.is_running ? 1 : 0;
  }

  Decision Run() {
    PlanDecodes();
    PlanPrompts();
    if (prompts_.empty()) PlanDrafts();
    MakeRoom();
    for (size_t i = 0; i < views_.size(); ++i)
      if (rows_[i] > 0) decision_.work.push_back({i, rows_[i]});
    return std::move(decision_);
  }

 private:
  /// A prompt in this step, and how many rows it may have.
  struct Prompt {
    size_t index = 0;
    int64_t rows_max = 0;
  };

  void PlanDecodes() {
    for (size_t i = 0; i < views_.size() && rows_left_ > 0; ++i) {
      if (!CanRun(i) || Remaining(i) != 1 || !TakePages(i, 1)) continue;
      TakeRows(i, 1);
      is_decoding_ = true;
    }
  }

  void PlanPrompts() {
    budget_ = is_decoding_ ? std::min(rows_left_, limits_.prompt_rows) : rows_left_;
    for (size_t i = 0; i < views_.size() && HasRowForAnother(); ++i) {
      if (!CanRun(i) || Remaining(i) <= 1) continue;
      // What fits; only for its first row do others give way.
      const int64_t rows = std::max<int64_t>(std::min(Remaining(i), RowsThatFit(i)), 1);
      if (TakePages(i, rows)) prompts_.push_back({i, rows});
    }
    Admit();
    std::erase_if(prompts_, [this](const Prompt& p) { return preempted_[p.index]; });
    ShareRows();
  }

  void Admit() {
    // Pages that were just taken away are for those that run, not for newcomers.
    if (!decision_.preempt.empty()) return;
    for (size_t i = 0; i < views_.size() && HasRowForAnother(); ++i) {
      const SequenceView& view = views_[i];
      if (view.is_running || !view.is_ready) continue;
      // A prompt must fit as a whole, or it would only be preempted half way. Shared pages that
      // nobody uses now are there, but cannot be given up any more. Once somebody is preempted his
      // pages count as free: nobody is admitted on the promise of sharing them, before or after.
      int64_t shared = decision_.preempt.empty() ? view.shared_pages - view.idle_pages : 0;
      const int64_t all = PagesFor(view.tokens, limits_.page_tokens);
      if (!Fits(all - shared)) {
        if (has_promised_ || !TakeFromLowerPriority(i)) return;
        shared = 0;
      }
      has_promised_ = has_promised_ || shared > 0;
      const int64_t pages = all - shared;
      // Reserve what the rest of the prompt needs, so that the next newcomer does not take it.
      pages_left_ -= pages;
      ++running_;
      if (!IsBeingComputed(i)) prompts_.push_back({i, Remaining(i)});
    }
  }

  /// Half of the rows to the first, the others by what they still need, then what is left in order.
  void ShareRows() {
    if (prompts_.empty()) return;
    std::ranges::sort(prompts_, {}, &Prompt::index);
    Give(prompts_.front(), std::max<int64_t>(budget_ - budget_ / 2, 1));
    std::vector<Prompt> by_need(prompts_.begin() + 1, prompts_.end());
    std::ranges::stable_sort(by_need, {}, [this](const Prompt& p) { return Remaining(p.index); });
    for (const Prompt& prompt : by_need) Give(prompt, budget_);
    for (const Prompt& prompt : prompts_) Give(prompt, budget_);
  }

  void Give(const Prompt& prompt, int64_t rows) {
    int64_t most = std::min({rows, budget_, prompt.rows_max - rows_[prompt.index]});
    if (views_[prompt.index].needs_all_logits) most = std::min(most, logits_rows_left_);
    TakeRows(prompt.index, most);
    budget_ -= most;
  }

  void PlanDrafts() {
    for (size_t i = 0; i < views_.size() && rows_left_ > 0; ++i) {
      if (rows_[i] != 1 || views_[i].drafts == 0) continue;
      // Its page for the first row is taken: only what is free beyond that.
      const int64_t held = std::max<int64_t>(std::ssize(views_[i].pages),
                                             PagesFor(views_[i].computed + 1, limits_.page_tokens));
      const int64_t room = (held + pages_left_) * limits_.page_tokens - views_[i].computed - 1;
      const int64_t drafts = std::min({views_[i].drafts, rows_left_, room});
      if (drafts <= 0) continue;
      pages_left_ -= std::max<int64_t>(
          PagesFor(views_[i].computed + 1 + drafts, limits_.page_tokens) - held, 0);
      TakeRows(i, drafts);
    }
  }

  /// Nothing was planned although something is ready: sequences that wait hold all pages or places.
  /// They are preempted, the last first, until the first that is ready has both.
  void MakeRoom() {
    if (rows_left_ < limits_.rows) return;
    for (size_t i = 0; i < views_.size(); ++i) {
      if (!views_[i].is_ready || (views_[i].is_running && !preempted_[i])) continue;
      // What it shares may become idle meanwhile: as if it shared nothing.
      const int64_t pages = PagesFor(views_[i].tokens, limits_.page_tokens);
      while (running_ > 0 && !Fits(pages)) Preempt(LastRunning());
      const int64_t logits_rows = views_[i].needs_all_logits ? logits_rows_left_ : rows_left_;
      TakeRows(i, std::min({Remaining(i), rows_left_, logits_rows}));
      return;
    }
  }

  bool CanRun(size_t i) const {
    return views_[i].is_running && views_[i].is_ready && !preempted_[i];
  }
  int64_t Remaining(size_t i) const { return views_[i].tokens - views_[i].computed; }
  bool HasRowForAnother() const { return std::ssize(prompts_) < budget_; }
  bool Fits(int64_t pages) const { return pages <= pages_left_ && running_ < limits_.running; }

  int64_t NewPages(size_t i, int64_t rows) const {
    return std::max<int64_t>(
        PagesFor(views_[i].computed + rows, limits_.page_tokens) - std::ssize(views_[i].pages), 0);
  }
  int64_t RowsThatFit(size_t i) const {
    return (std::ssize(views_[i].pages) + pages_left_) * limits_.page_tokens - views_[i].computed;
  }

  /// Pages for so many rows, from others if need be. False when it gave way itself.
  bool TakePages(size_t i, int64_t rows) {
    while (NewPages(i, rows) > pages_left_) {
      const size_t victim = LastRunning();
      Preempt(victim);
      if (victim == i) return false;
    }
    pages_left_ -= NewPages(i, rows);
    taken_for_[i] = rows;
    return true;
  }

  void TakeRows(size_t i, int64_t rows) {
    rows_[i] += rows;
    rows_left_ -= rows;
    if (views_[i].needs_all_logits) logits_rows_left_ -= rows;
  }

  /// Does a sequence before `i` that runs in this step have the next page of `i` before it?
  bool IsBeingComputed(size_t i) const {
    const SequenceView& view = views_[i];
    const int64_t page = view.shared_pages;
    if (page >= std::ssize(view.page_keys)) return false;
    const auto index = static_cast<size_t>(page);
    const auto computes = [&](size_t j) {
      const SequenceView& other = views_[j];
      return j < i && page < std::ssize(other.page_keys) &&
             other.computed < (page + 1) * limits_.page_tokens &&
             other.page_keys[index] == view.page_keys[index];
    };
    for (size_t j = 0; j < i; ++j)
      if (rows_[j] > 0 && computes(j)) return true;
    return std::ranges::any_of(prompts_, [&](const Prompt& p) { return computes(p.index); });
  }

  size_t LastRunning() const {
    for (size_t i = views_.size(); i-- > 0;)
      if (views_[i].is_running && !preempted_[i]) return i;
    TESSERA_CHECK(false);  // The caller runs itself.
    return 0;
  }

  /// Preempts running sequences of a lower priority, the last first, until `i` fits with nothing
  /// shared; none when that is not enough.
  bool TakeFromLowerPriority(size_t i) {
    const int64_t pages = PagesFor(views_[i].tokens, limits_.page_tokens);
    int64_t free = pages_left_, running = running_;
    std::vector<size_t> victims;
    for (size_t j = views_.size(); j-- > i + 1 && (pages > free || running >= limits_.running);) {
      if (!views_[j].is_running || preempted_[j] || views_[j].priority <= views_[i].priority)
        continue;
      victims.push_back(j);
      --running;
      for (const PageId page : views_[j].pages)
        free += page_users_[static_cast<size_t>(page)] == 1 ? 1 : 0;
    }
    if (pages > free || running >= limits_.running) return false;
    for (const size_t victim : victims) Preempt(victim);
    return true;
  }

  void Preempt(size_t i) {
    for (const PageId page : views_[i].pages) {  // There again when the last user gives it back.
      int32_t& users = page_users_[static_cast<size_t>(page)];
      TESSERA_CHECK(users > 0);
      if (--users == 0) ++pages_left_;
    }
    pages_left_ += NewPages(i, taken_for_[i]);  // What it was to get in this step.
    taken_for_[i] = 0;
    TakeRows(i, -rows_[i]);
    preempted_[i] = true;
    --running_;
    decision_.preempt.push_back(i);
  }

  std::span<const SequenceView> views_;
  const ScheduleLimits limits_;
  std::vector<int32_t> page_users_;  // Without those preempted.
  std::vector<int64_t> rows_;
  std::vector<int64_t> taken_for_ = std::vector<int64_t>(views_.size(), 0);  // Rows with pages.
  std::vector<bool> preempted_;
  std::vector<Prompt> prompts_;
  int64_t rows_left_;
  int64_t logits_rows_left_;
  int64_t pages_left_;
  int64_t budget_ = 0;  // Rows left for prompts.
  int64_t running_ = 0;
  bool is_decoding_ = false;
  bool has_promised_ = false;  // A newcomer counts on pages that others use.
  Decision decision_;
};

}  // namespace

Decision Schedule(std::span<const SequenceView> views, const ScheduleLimits& limits) {
  TESSERA_CHECK(limits.rows > 0 && limits.running > 0 && limits.page_tokens > 0 &&
                limits.logits_rows > 0 && limits.prompt_rows > 0);
  return Planner(views, limits).Run();
}

}  // namespace tessera::engine
