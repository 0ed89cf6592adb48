// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_core.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "engine/logprobs.h"

namespace tessera::engine {
EngineCore::EngineCore(runtime::Session* session, const CoreOptions& options, const Clock* clock)
    : session_(session),
      shape_(session->shape()),
      options_(options),
      clock_(clock),
      pool_(shape_.page_count),
      cache_(&pool_, shape_.page_tokens, options.prefix_cache_pages, MakeSpill()),
      drawers_(static_cast<size_t>(session->workers())),
      masks_(shape_.vocab_size, kMaskThreads, options.on_mask_ready) {
  TESSERA_CHECK(options.max_running > 0);
  TESSERA_CHECK(shape_.page_tokens > 0 && shape_.max_rows > 0 && shape_.vocab_size > 0);
  UpdateGauges();
}

void EngineCore::Add(RequestId id, Request request) {
  TESSERA_CHECK(CheckRequest(request, shape_).ok());
  TESSERA_CHECK(sequences_.empty() || sequences_.back()->id < id);
  sequences_.push_back(std::make_unique<Sequence>(id, std::move(request)));
  Sequence& sequence = *sequences_.back();
  is_stalled_ = false;
  sequence.shares_prefix = sequence.request.cache_prompt && options_.prefix_cache_pages > 0;
  if (sequence.request.beams.has_value()) {
    sequence.beams = std::make_shared<BeamGroup>(id, sequence.request);
    sequence.shares_prefix = true;  // Among the beams, at least.
  }
  if (!sequence.shares_prefix) sequence.cache_miss.reason = CacheMiss::Reason::kOff;
  fair_queue_.Enter(sequence.request.client);
  UpdateGauges();
}

void EngineCore::End(RequestId id, FinishReason reason, Status status, int64_t kept_tokens) {
  const auto found = std::ranges::lower_bound(sequences_, id, {},
                                              [](const auto& sequence) { return sequence->id; });
  // Of a beam search any sequence may be the first.
  if (found == sequences_.end()) return;
  const bool is_beam = (*found)->beams != nullptr && (*found)->beams->id == id;
  if ((*found)->id != id && !is_beam) return;
  Retire(found->get(), reason, std::move(status), kept_tokens);
  found->reset();
  RemoveRetired();
  is_stalled_ = false;  // Its pages may be what another waits for.
  UpdateGauges();
}

void EngineCore::EndAll(FinishReason reason, const Status& status) {
  while (!sequences_.empty()) End(sequences_.back()->id, reason, status);
}

void EngineCore::Step() {
  is_stalled_ = false;
  Enter(Stage::kPlan);
  ExpireDeadlines();
  SettleMasks();
  if (sequences_.empty()) return;
  Decision decision = Plan();
  Preempt(decision.preempt);
  is_stalled_ = decision.work.empty();
  if (is_stalled_) {
    TESSERA_CHECK(std::ranges::any_of(sequences_, [](const auto& sequence) {
      return sequence->awaits_mask || sequence->fetch.has_value();
    }));
    return UpdateGauges();
  }
  Admit(decision.work);
  for (Work& item : decision.work) {
    Sequence& sequence = *sequences_[item.index];
    const int64_t known = std::ssize(sequence.tokens) - sequence.computed;
    item.rows = std::min(item.rows, known + std::ssize(sequence.drafts));
    sequence.drafts.resize(static_cast<size_t>(std::max<int64_t>(item.rows - known, 0)));
  }
  const StepLoad load = PrepareChunks(decision.work);
  Enter(Stage::kModel);
  const TimePoint begin = clock_->Now();
  const auto logits = session_->Step(chunks_);
  ++stats_.steps;
  Enter(Stage::kDraw);
  if (logits.has_value()) {
    stats_.last_step = clock_->Now();
    step_cost_.Observe(load, *stats_.last_step - begin);
    mask_deadline_ = std::chrono::steady_clock::now() + options_.mask_patience;
    Advance(decision.work, *logits);
  } else {
    FailBatch(decision.work, logits.error());
  }
  RemoveRetired();
  AdvanceBeams();
  UpdateGauges();
}

void EngineCore::ExpireDeadlines() {
  const TimePoint now = clock_->Now();
  for (auto& sequence : sequences_) {
    if (sequence == nullptr) continue;  // Went with another beam.
    if (!sequence->request.deadline.has_value() || now < *sequence->request.deadline) continue;
    Retire(sequence.get(), FinishReason::kDeadline,
           DeadlineExceeded("the request's deadline passed"), -1);
    sequence.reset();
  }
  RemoveRetired();
  UpdateGauges();
}

void EngineCore::LeavePages(Sequence* sequence) {
  if (sequence->shares_prefix)
    cache_.Store(std::span(sequence->tokens).first(static_cast<size_t>(sequence->computed)),
                 /*with_rest=*/true, &sequence->pages);
  cache_.Release(&sequence->pages);
}

void EngineCore::Unschedule(Sequence* sequence) {
  LeavePages(sequence);
  sequence->computed = 0;
  sequence->is_running = false;
}

StepLoad EngineCore::PrepareChunks(std::span<const Work> work) {
  chunks_.clear();
  StepLoad load;
  for (const Work& item : work) {
    Sequence& sequence = *sequences_[item.index];
    const int64_t end = sequence.computed + item.rows;
    const int64_t missing = PagesFor(end, shape_.page_tokens) - std::ssize(sequence.pages.ids);
    if (missing > 0) TESSERA_CHECK(cache_.TryTake(missing, &sequence.pages));
    TESSERA_CHECK(end <= std::ssize(sequence.tokens) + std::ssize(sequence.drafts));
    const bool is_last = end >= std::ssize(sequence.tokens);
    const bool has_drafts = !sequence.drafts.empty();
    std::span<const TokenId> input = sequence.tokens;
    input = input.subspan(static_cast<size_t>(sequence.computed));
    if (has_drafts) {
      sequence.draft_input.assign(1, sequence.tokens.back());
      sequence.draft_input.insert(sequence.draft_input.end(), sequence.drafts.begin(),
                                  sequence.drafts.end());
      input = sequence.draft_input;
    }
    using Wanted = runtime::Chunk::Logits;
    chunks_.push_back({.tokens = input.first(static_cast<size_t>(item.rows)),
                       .start = sequence.computed,
                       .pages = sequence.pages.ids,
                       .logits = sequence.is_scoring() || has_drafts ? Wanted::kAll
                                 : is_last                           ? Wanted::kLast
                                                                     : Wanted::kNone,
                       .hidden = sequence.request.pooling != Pooling::kNone});
    load.Add(item.rows, sequence.computed);
  }
  stats_.step_tokens.Observe(static_cast<double>(load.rows));
  return load;
}

void EngineCore::FailBatch(std::span<const Work> work, const Status& status) {
  for (const Work& item : work) {
    if (sequences_[item.index] == nullptr) continue;  // Went with another beam.
    Retire(sequences_[item.index].get(), FinishReason::kError, status, -1);
    sequences_[item.index].reset();
  }
}

void EngineCore::Advance(std::span<const Work> work, std::span<const float> logits) {
  const auto vocab = static_cast<size_t>(shape_.vocab_size);
  drawing_.clear();
  size_t row = 0;
  for (size_t i = 0; i < work.size(); ++i) {
    Sequence& sequence = *sequences_[work[i].index];
    const int64_t start = sequence.computed;
    // Guesses count once they have proved right.
    sequence.computed += work[i].rows - std::ssize(sequence.drafts);
    if (sequence.computed == std::ssize(sequence.tokens) && IsMaskLate(&sequence))
      --sequence.computed;
    const bool is_last = sequence.computed == std::ssize(sequence.tokens);
    // The begun page of a complete prompt, too, for those who have the same prompt.
    if (sequence.shares_prefix)
      cache_.Store(std::span(sequence.tokens).first(static_cast<size_t>(sequence.computed)),
                   /*with_rest=*/is_last && sequence.generated() == 0, &sequence.pages);
    if (sequence.request.wants_progress && sequence.generated() == 0) ReportPrefill(sequence);
    if (chunks_[i].logits == runtime::Chunk::Logits::kNone) continue;
    const bool is_all = chunks_[i].logits == runtime::Chunk::Logits::kAll;
    const size_t rows = is_all ? static_cast<size_t>(work[i].rows) : 1;
    TESSERA_CHECK((row + rows) * vocab <= logits.size());
    if (sequence.request.pooling != Pooling::kNone) {
      const auto width = static_cast<size_t>(shape_.hidden_size);
      PoolRows(&sequence, session_->hidden().subspan(row * width, rows * width),
               is_all ? start : sequence.computed - 1);
    }
    if (TakePrompt(&sequence, logits.subspan(row * vocab, rows * vocab), start)) {
      sequences_[work[i].index].reset();
    } else if (is_last && EndByMask(&sequence)) {
      sequences_[work[i].index].reset();
    } else if (is_last) {
      const size_t drafts = sequence.drafts.size();
      drawing_.push_back({work[i].index, row + rows - 1 - drafts, 1 + drafts});
    }
    row += rows;
  }
  chunks_.clear();  // Its spans point into sequences that may be gone.
  TESSERA_CHECK(row * vocab == logits.size());
  DrawTokens(logits);
  for (size_t i = 0; i < drawing_.size(); ++i) {
    std::unique_ptr<Sequence>& sequence = sequences_[drawing_[i].index];
    if (sequence == nullptr) continue;  // Went with another beam.
    if (TakeDrawn(sequence.get(), std::move(drawn_[i]))) sequence.reset();
  }
}

void EngineCore::ReportPrefill(const Sequence& sequence) {
  events_.push_back({sequence.request.sink,
                     PrefillProgress{.total = sequence.prompt_tokens(),
                                     .cached = sequence.cached_tokens,
                                     .processed = sequence.computed,
                                     .elapsed = clock_->Now() - *sequence.first_scheduled}});
}

bool EngineCore::TakePrompt(Sequence* sequence, std::span<const float> rows,
                            int64_t first_position) {
  if (sequence->is_scoring() && sequence->request.pooling == Pooling::kNone) {
    Status status = ScorePrompt(sequence, rows, first_position);
    if (!status.ok()) {
      Retire(sequence, FinishReason::kError, std::move(status), -1);
      return true;
    }
  }
  if (sequence->computed < std::ssize(sequence->tokens)) return false;
  EndPrompt(sequence);
  if (sequence->request.stop.max_tokens > 0) return false;
  // All that was wanted are the prompt's logprobs.
  Retire(sequence, FinishReason::kLength, {}, -1);
  return true;
}

void EngineCore::PoolRows(Sequence* sequence, std::span<const float> rows, int64_t first_position) {
  const auto width = static_cast<size_t>(shape_.hidden_size);
  sequence->pooled.resize(width, 0.0);
  const auto add = [&](int64_t position) {
    const auto row = static_cast<size_t>(position - first_position);
    for (size_t i = 0; i < width; ++i)
      sequence->pooled[i] += static_cast<double>(rows[row * width + i]);
  };
  if (sequence->request.pooling == Pooling::kLast) {
    if (sequence->computed == sequence->prompt_tokens()) add(sequence->computed - 1);
    return;
  }
  // In order of the positions, whatever the chunks; those of a preempted beginning were added.
  for (; sequence->scored < sequence->computed; ++sequence->scored) add(sequence->scored);
}

void EngineCore::EndPooling(Sequence* sequence) {
  const double count = sequence->request.pooling == Pooling::kMean
                           ? static_cast<double>(sequence->prompt_tokens())
                           : 1.0;
  Embedding embedding;
  for (const double sum : sequence->pooled)
    embedding.values.push_back(static_cast<float>(sum / count));
  events_.push_back({sequence->request.sink, std::move(embedding)});
}

Status EngineCore::ScorePrompt(Sequence* sequence, std::span<const float> rows,
                               int64_t first_position) {
  const auto vocab = static_cast<size_t>(shape_.vocab_size);
  // Rows before `scored` are computed again after a preemption; the last row says what comes next.
  while (sequence->scored < sequence->computed + 1 && sequence->is_scoring()) {
    const auto row = static_cast<size_t>(sequence->scored - 1 - first_position);
    const TokenId token = sequence->tokens[static_cast<size_t>(sequence->scored)];
    Logprobs logprobs =
        ComputeLogprobs(rows.subspan(row * vocab, vocab), token, sequence->request.prompt_logprobs);
    if (std::isnan(logprobs.chosen))
      return Internal("the model produced logits that are not numbers");
    sequence->prompt_logprobs.push_back(std::move(logprobs));
    ++sequence->scored;
  }
  return {};
}

void EngineCore::EndPrompt(Sequence* sequence) {
  if (std::exchange(sequence->is_prompt_done, true)) return;
  TESSERA_CHECK(!sequence->is_scoring());
  if (!sequence->request.is_probe) {
    stats_.prompt_tokens += sequence->prompt_tokens();
    if (sequence->shares_prefix) stats_.prefix_cache_queries += sequence->prompt_tokens();
    stats_.prefix_cache_hits += sequence->cached_tokens;
  }
  if (sequence->request.pooling != Pooling::kNone) EndPooling(sequence);
  if (sequence->request.prompt_logprobs < 0) return;
  if (sequence->request.beams.has_value())
    for (const std::shared_ptr<Sink>& sink : sequence->request.beams->more_sinks)
      events_.push_back({sink, sequence->prompt_logprobs});
  events_.push_back({sequence->request.sink, std::move(sequence->prompt_logprobs)});
}

void EngineCore::DrawTokens(std::span<const float> logits) {
  const auto vocab = static_cast<size_t>(shape_.vocab_size);
  const auto blocks = static_cast<size_t>(kernels::LogitBlocks(shape_.vocab_size));
  const std::span<const float> maxima = session_->block_max();
  TESSERA_CHECK(maxima.empty() || maxima.size() / blocks == logits.size() / vocab);
  drawn_.assign(drawing_.size(), std::vector<TokenOutput>());
  session_->ForEach(std::ssize(drawing_), [&](int64_t i, int worker) {
    const Drawing& drawing = drawing_[static_cast<size_t>(i)];
    std::vector<Logits> rows;
    for (size_t row = drawing.row; row < drawing.row + drawing.rows; ++row)
      rows.emplace_back(logits.subspan(row * vocab, vocab),
                        maxima.empty() ? maxima : maxima.subspan(row * blocks, blocks));
    drawn_[static_cast<size_t>(i)] =
        drawers_[static_cast<size_t>(worker)].Draw(*sequences_[drawing.index], rows);
  });
}

bool EngineCore::TakeDrawn(Sequence* sequence, Result<Drawn> drawn) {
  if (!drawn.has_value()) {
    Retire(sequence, FinishReason::kError, drawn.error(), -1);
    return true;
  }
  if (auto* report = std::get_if<BeamReport>(&*drawn)) {
    sequence->report = std::move(*report);
    return false;
  }
  auto& tokens = std::get<std::vector<TokenOutput>>(*drawn);
  TESSERA_CHECK(!tokens.empty());
  if (!sequence->drafts.empty()) {
    const int64_t drafted = std::ssize(sequence->drafts);
    const int64_t accepted = std::ssize(tokens) - 1;
    sequence->draft_policy.Observe(drafted, accepted);
    ++stats_.draft_steps;
    stats_.draft_tokens += drafted;
    stats_.draft_accepted += accepted;
    sequence->drafts.clear();
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) ++sequence->computed;  // The token before was guessed, and its KV computed.
    if (TakeToken(sequence, std::move(tokens[i]))) return true;
  }
  return false;
}

bool EngineCore::TakeToken(Sequence* sequence, TokenOutput token) {
  const TokenId id = token.id;
  const bool is_end = token.is_end;
  events_.push_back({sequence->request.sink, std::move(token)});
  sequence->tokens.push_back(id);
  sequence->history.Push(id);
  CountToken(sequence);
  const bool is_full = sequence->generated() >= sequence->request.stop.max_tokens;
  if (!is_end && sequence->mask != nullptr) {
    ++stats_.masked_tokens;
    masks_.Accept(sequence->mask, id);
    // Whether the last token made it whole decides between stop and length: the mask tells.
    sequence->awaits_mask = is_full;
    return false;
  }
  if (!is_end && !is_full) return false;
  Retire(sequence, is_end ? FinishReason::kStop : FinishReason::kLength, {}, -1);
  return true;
}

void EngineCore::CountToken(Sequence* sequence) {
  const TimePoint now = clock_->Now();
  const bool is_first = !sequence->first_token.has_value();
  const TimePoint before = std::exchange(sequence->last_token, now);
  if (is_first) sequence->first_token = now;
  fair_queue_.Charge(sequence->request.client, FairQueue::kGeneratedToken);
  if (sequence->request.is_probe) return;
  ++stats_.generation_tokens;
  if (is_first) {
    stats_.time_to_first_token.Observe(Seconds(now - sequence->request.arrival));
  } else {
    stats_.inter_token_latency.Observe(Seconds(now - before));
  }
}

void EngineCore::Retire(Sequence* sequence, FinishReason reason, Status status,
                        int64_t kept_tokens) {
  if (sequence->beams != nullptr) return RetireBeams(*sequence->beams, reason, status);
  // After a failed step nothing more is said of what its pages hold.
  if (reason == FinishReason::kError) {
    cache_.Release(&sequence->pages);
  } else {
    LeavePages(sequence);
  }
  fair_queue_.Leave(sequence->request.client);
  const TimePoint now = clock_->Now();
  if (sequence->mask != nullptr) masks_.Discard(std::move(sequence->mask));
  Finish finish = sequence->MakeFinish(reason, std::move(status), kept_tokens, now);
  if (!sequence->request.is_probe) CountFinish(sequence->request, finish, now, &stats_);
  events_.push_back({sequence->request.sink, std::move(finish)});
}

void EngineCore::RemoveRetired() {
  std::erase_if(sequences_, [](const auto& sequence) { return sequence == nullptr; });
}

void EngineCore::UpdateGauges() {
  stats_.running = std::ranges::count_if(sequences_, [](const auto& s) { return s->is_running; });
  stats_.waiting = static_cast<int64_t>(sequences_.size()) - stats_.running;
  stats_.admissions_per_second = admissions_.PerSecond(clock_->Now());
  stats_.step_cost = {step_cost_.step(), step_cost_.row(), step_cost_.position()};
  stats_.kv_pages_used = pool_.used();
  stats_.kv_pages_total = pool_.total();
  stats_.prefix_cache_pages = cache_.pages();
  stats_.prefix_cache_evictions = cache_.evictions();
  if (options_.store != nullptr) stats_.page_store = options_.store->stats();
}

bool EngineCore::can_back() const {
  const int64_t ahead = PagesFor(kBackedTokensAhead, shape_.page_tokens);
  return std::max(backed_, pool_.first_fresh()) <
         std::min(pool_.first_fresh() + ahead, pool_.total());
}

void EngineCore::BackNextPage() {
  backed_ = std::max(backed_, pool_.first_fresh());
  session_->BackPage(backed_++);
}

int64_t EngineCore::Deliver() {
  int64_t finished = 0;
  std::vector<Event> events;
  events.swap(events_);
  for (Event& event : events) {
    if (auto* token = std::get_if<TokenOutput>(&event.what)) {
      event.sink->OnToken(std::move(*token));
    } else if (auto* prompt = std::get_if<PromptLogprobs>(&event.what)) {
      event.sink->OnPrompt(std::move(*prompt));
    } else if (auto* embedding = std::get_if<Embedding>(&event.what)) {
      event.sink->OnEmbedding(std::move(embedding->values));
    } else if (const auto* progress = std::get_if<PrefillProgress>(&event.what)) {
      event.sink->OnPrefill(*progress);
    } else {
      event.sink->OnFinish(std::get<Finish>(std::move(event.what)));
      ++finished;
    }
  }
  for (const Event& event : events) event.sink->OnStepEnd();
  return finished;
}

}  // namespace tessera::engine
