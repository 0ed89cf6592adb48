// SPDX-License-Identifier: Apache-2.0
//
// From the state of all sequences to what a step computes, and the pages for it.
#include <algorithm>

#include "base/check.h"
#include "engine/engine_core.h"
#include "engine/ngram_draft.h"
#include "engine/prompt_budget.h"

namespace tessera::engine {

Decision EngineCore::Plan() {
  OrderSequences();
  FetchPages();
  GuessTokens();
  std::vector<SequenceView> views;
  views.reserve(order_.size());
  const TimePoint now = clock_->Now();
  int64_t places = options_.max_running;
  for (const auto& sequence : sequences_) places -= sequence->is_running ? 1 : 0;
  for (const size_t index : order_) {
    Sequence& sequence = *sequences_[index];
    sequence.UpdatePageKeys(shape_.page_tokens);
    // Those behind the last free place cannot join, unless they take one: looking them up is idle
    // work.
    const bool may_join = !sequence.is_running && !sequence.report.has_value() && places-- > 0;
    views.push_back(sequence.View(
        may_join && sequence.shares_prefix ? cache_.Find(sequence.Reusable()) : PrefixMatch{},
        now));
  }
  Decision decision = Schedule(views, {.rows = shape_.max_rows,
                                       .running = options_.max_running,
                                       .page_tokens = shape_.page_tokens,
                                       .free_pages = cache_.available(),
                                       .page_users = pool_.users(),
                                       .logits_rows = kAllLogitsRowsMax,
                                       .prompt_rows = PromptRows(views)});
  for (size_t& index : decision.preempt) index = order_[index];
  for (Work& item : decision.work) item.index = order_[item.index];
  return decision;
}

void EngineCore::OrderSequences() {
  // Those that ran before keep their order, so that a preempted one does not lose its turn.
  order_.clear();
  std::vector<size_t> newcomers;
  std::vector<FairQueue::Waiting> waiting;
  for (size_t i = 0; i < sequences_.size(); ++i) {
    const Sequence& sequence = *sequences_[i];
    if (sequence.first_scheduled.has_value()) {
      order_.push_back(i);
      continue;
    }
    newcomers.push_back(i);
    waiting.push_back(
        {sequence.request.client, sequence.request.priority, sequence.prompt_tokens()});
  }
  for (const size_t i : fair_queue_.Order(waiting)) order_.push_back(newcomers[i]);
  std::ranges::stable_sort(order_, {},
                           [this](size_t i) { return sequences_[i]->request.priority; });
}

void EngineCore::GuessTokens() {
  if (options_.speculation == Speculation::kOff) return;
  StepLoad decoding;
  for (const auto& sequence : sequences_)
    if (sequence->is_running && sequence->computed + 1 == std::ssize(sequence->tokens))
      decoding.Add(1, sequence->computed);
  // Tokens that the batch makes in the time of a row; a cautious guess while nothing is known.
  const double step = Seconds(step_cost_.Predict(decoding));
  const double row_cost =
      step > 0 ? step_cost_.row() * static_cast<double>(decoding.rows) / step : 0.3;
  for (auto& sequence : sequences_) {
    sequence->drafts.clear();
    const Request& request = sequence->request;
    const bool is_decoding =
        sequence->is_running && sequence->computed + 1 == std::ssize(sequence->tokens);
    // A constrained one has no mask for what comes after the next token.
    if (!is_decoding || sequence->beams != nullptr || sequence->mask != nullptr) continue;
    const int64_t room = std::min(request.stop.max_tokens - sequence->generated(),
                                  shape_.max_seq_len - std::ssize(sequence->tokens)) -
                         1;
    const int64_t count = std::min(sequence->draft_policy.Count(row_cost), room);
    sequence->drafts = NgramDraft(sequence->tokens, count);
    if (sequence->drafts.empty()) sequence->draft_policy.Rest();
  }
}

int64_t EngineCore::PromptRows(std::span<const SequenceView> views) {
  if (options_.target_itl <= Duration::zero()) return shape_.max_rows;
  StepLoad decoding;
  int64_t start = 0;  // Of the prompt that looks at most.
  int64_t prompts = 0;
  int64_t places = options_.max_running;
  for (const SequenceView& view : views) places -= view.is_running ? 1 : 0;
  for (const SequenceView& view : views) {
    if (view.is_running && view.tokens - view.computed == 1) {
      decoding.Add(1, view.computed);
    } else if (view.is_ready) {
      start = std::max(start, view.computed);
      prompts += view.is_running || places-- > 0 ? 1 : 0;
    }
  }
  if (decoding.rows == 0) return shape_.max_rows;
  const Duration time = StepTimeBesidePrompts(options_.target_itl, step_cost_.Predict(decoding),
                                              decoding.rows, prompts);
  const int64_t rows = step_cost_.RowsWithin(time, decoding, start, shape_.max_rows);
  stats_.prompt_rows = std::max(rows, std::min(kPromptRowsMin, shape_.max_rows));
  return stats_.prompt_rows;
}

void EngineCore::Preempt(std::span<const size_t> victims) {
  for (const size_t index : victims) {
    Sequence& sequence = *sequences_[index];
    TESSERA_CHECK(sequence.is_running);
    Unschedule(&sequence);
    sequence.drafts.clear();
    ++stats_.preemptions;
  }
}

void EngineCore::Admit(std::span<const Work> work) {
  const TimePoint now = clock_->Now();
  // All shared pages first: taking pages for one newcomer must not cost another what it has found.
  std::vector<Sequence*> newcomers;
  for (const Work& item : work) {
    Sequence& sequence = *sequences_[item.index];
    if (sequence.is_running) continue;
    sequence.is_running = true;
    if (sequence.request.constraint != nullptr && sequence.request.stop.max_tokens > 0)
      sequence.mask = masks_.Begin(std::move(sequence.request.constraint));
    newcomers.push_back(&sequence);
    if (!sequence.shares_prefix) continue;
    if (!sequence.first_scheduled.has_value())
      sequence.cache_miss = sequence.is_scoring() ? CacheMiss{CacheMiss::Reason::kLogprobs, 0}
                                                  : cache_.Find(sequence.tokens).miss;
    EndFetch(&sequence);
    cache_.Share(sequence.Reusable(), &sequence.pages);
    sequence.computed = sequence.pages.stored * shape_.page_tokens;
  }
  for (Sequence* sequence : newcomers) {
    if (sequence->shares_prefix) CopyTail(sequence);
    if (sequence->first_scheduled.has_value()) continue;
    sequence->first_scheduled = now;
    sequence->cached_tokens = sequence->computed;
    admissions_.Note(now);
    fair_queue_.Charge(sequence->request.client,
                       FairQueue::kPromptToken *
                           static_cast<double>(sequence->prompt_tokens() - sequence->computed));
  }
}

void EngineCore::CopyTail(Sequence* sequence) {
  const auto tail = cache_.TakeTail(sequence->Reusable(), &sequence->pages);
  if (!tail.has_value()) return;
  TESSERA_CHECK(session_->CopyPage(tail->from, tail->to).ok());
  sequence->computed += tail->tokens;
}

}  // namespace tessera::engine
