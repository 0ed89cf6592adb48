// SPDX-License-Identifier: Apache-2.0
#include "server/generation.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tessera::server {

/// Carries one choice's events from the engine thread to the task thread, in order. It keeps the
/// generation alive until the engine has let go of the request.
class Generation::ChoiceSink : public engine::Sink {
 public:
  ChoiceSink(std::shared_ptr<Generation> generation, size_t choice)
      : generation_(std::move(generation)), choice_(choice) {}

  void OnPrefill(engine::PrefillProgress progress) override {
    generation_->setting_.tasks->Defer([generation = generation_, choice = choice_, progress] {
      generation->HandlePrefill(choice, progress);
    });
  }
  void OnEmbedding(std::vector<float> pooled) override {
    generation_->setting_.tasks->Defer(
        [generation = generation_, choice = choice_, pooled = std::move(pooled)]() mutable {
          generation->HandleEmbedding(choice, std::move(pooled));
        });
  }
  void OnPrompt(engine::PromptLogprobs logprobs) override {
    generation_->setting_.tasks->Defer(
        [generation = generation_, choice = choice_, logprobs = std::move(logprobs)]() mutable {
          generation->HandlePrompt(choice, std::move(logprobs));
        });
  }
  void OnToken(engine::TokenOutput token) override {
    generation_->setting_.tasks->Defer(
        [generation = generation_, choice = choice_, token = std::move(token)]() mutable {
          generation->HandleToken(choice, std::move(token));
        });
  }
  void OnFinish(engine::Finish finish) override {
    generation_->setting_.tasks->Defer(
        [generation = generation_, choice = choice_, finish = std::move(finish)]() mutable {
          generation->HandleFinish(choice, std::move(finish));
        });
  }
  // One change of threads for a step instead of one for each token.
  void OnStepEnd() override { generation_->setting_.tasks->Wake(); }

 private:
  const std::shared_ptr<Generation> generation_;
  const size_t choice_;
};

Generation::Generation(const Setting& setting, std::unique_ptr<GenerationListener> listener)
    : setting_(setting), listener_(std::move(listener)) {}

Generation::~Generation() {
  setting_.registry->Remove(registered_);
}

Result<std::shared_ptr<Generation>> Generation::Start(
    const Setting& setting, std::vector<std::string> names, std::vector<ChoiceSpec> choices,
    std::unique_ptr<GenerationListener> listener) {
  TESSERA_CHECK(!choices.empty());
  auto generation = std::make_shared<Generation>(setting, std::move(listener));
  generation->Register(std::move(names), choices.front().request.client);
  generation->listener_->OnStart([weak = std::weak_ptr<Generation>(generation)](const Status& why) {
    const auto alive = weak.lock();
    if (alive == nullptr || alive->failed_ || alive->open_ == 0) return false;
    alive->Fail(why);
    return true;
  });
  TESSERA_RETURN_IF_ERROR(generation->Submit(std::move(choices)));
  return generation;
}

void Generation::Register(std::vector<std::string> names, engine::ClientId owner) {
  registered_ = setting_.registry->Add(std::move(names), owner, [weak = weak_from_this()] {
    if (const auto alive = weak.lock())
      alive->Cancel(Cancelled("the request was cancelled by DELETE /v1/requests"));
  });
}

Status Generation::Submit(std::vector<ChoiceSpec> specs) {
  std::vector<engine::Request> requests;
  for (size_t i = 0; i < specs.size(); ++i) {
    choices_.push_back({std::move(specs[i].processor), specs[i].prompt, false, false});
    if (specs[i].prompt == prompts_.size())
      facts_.prompt_tokens += std::ssize(specs[i].request.prompt);
    prompts_.resize(std::max(prompts_.size(), specs[i].prompt + 1));
    auto sink = std::make_shared<ChoiceSink>(shared_from_this(), i);
    if (specs[i].is_next_beam) {
      TESSERA_CHECK(!requests.empty() && requests.back().beams.has_value());
      requests.back().beams->more_sinks.push_back(std::move(sink));
    } else {
      requests.push_back(std::move(specs[i].request));
      requests.back().sink = std::move(sink);
    }
    request_of_.push_back(requests.size() - 1);
  }
  open_ = choices_.size();
  totals_.stop_strings.resize(open_);
  // Events may arrive before SubmitAll returns; whoever needs an id waits here for it.
  const std::lock_guard lock(mutex_);
  TESSERA_ASSIGN_OR_RETURN(ids_, setting_.engine->SubmitAll(std::move(requests)));
  // It was in the registry before: somebody may have been that quick.
  if (cancelled_.has_value())
    for (const engine::RequestId id : ids_) setting_.engine->Cancel(id);
  return {};
}

engine::RequestId Generation::IdOf(size_t choice) {
  const std::lock_guard lock(mutex_);
  return ids_[request_of_[choice]];
}

void Generation::Cancel(Status why) {
  {
    const std::lock_guard lock(mutex_);
    if (!cancelled_.has_value()) {
      cancelled_ = std::move(why);
      if (setting_.clock != nullptr) cancelled_at_ = setting_.clock->Now();
    }
  }
  CancelInEngine();
}

void Generation::CancelInEngine() {
  const std::lock_guard lock(mutex_);
  for (const engine::RequestId id : ids_) setting_.engine->Cancel(id);
}

Status Generation::CauseOf(const Status& status) {
  if (status.code() != Code::kCancelled) return status;
  const std::lock_guard lock(mutex_);
  // What nobody here asked for is the server's shutting down.
  return cancelled_.has_value() ? *cancelled_ : Unavailable(status.message());
}

void Generation::HandlePrefill(size_t choice, const engine::PrefillProgress& progress) {
  if (!failed_) listener_->OnPrefill(choice, progress);
}

void Generation::HandleEmbedding(size_t choice, std::vector<float> pooled) {
  if (!failed_) listener_->OnEmbedding(choice, std::move(pooled));
}

void Generation::HandlePrompt(size_t choice, engine::PromptLogprobs logprobs) {
  if (!failed_) listener_->OnPrompt(choice, std::move(logprobs));
}

void Generation::HandleToken(size_t index, engine::TokenOutput token) {
  Choice& choice = choices_[index];
  if (failed_ || choice.is_complete) return;
  Deliver(index, choice.processor->OnToken(std::move(token)));
  choice.is_complete = choice.processor->stopped() || listener_->IsComplete(index);
  // The choice ends when the engine confirms: by then it is counted and its pages are free.
  if (!failed_ && choice.is_complete)
    setting_.engine->Stop(IdOf(index), choice.processor->token_count());
}

void Generation::HandleFinish(size_t index, engine::Finish finish) {
  Choice& choice = choices_[index];
  TESSERA_CHECK(!choice.is_over);
  choice.is_over = true;
  --open_;
  if (failed_) return;
  facts_.Add(finish);
  CountEnd(finish);
  const bool stopped = choice.is_complete;
  if (!finish.status.ok() && !stopped) return Fail(CauseOf(finish.status));
  Deliver(index, choice.processor->OnEnd());
  if (failed_) return;
  totals_.completion_tokens += choice.processor->token_count();
  totals_.stop_strings[index] = choice.processor->stop_string();
  CountCached(choice.prompt, finish);
  if (const auto score = choice.processor->mean_logprob(); score.has_value())
    listener_->OnChoiceScore(index, *score);
  listener_->OnChoiceEnd(index, stopped ? engine::FinishReason::kStop : finish.reason);
  if (open_ > 0) return;
  setting_.registry->Remove(registered_);
  for (const PromptCache& prompt : prompts_) totals_.cached_tokens += prompt.tokens;
  if (prompts_.size() == 1) totals_.cache_miss = prompts_.front().miss;
  ReportFacts();
  listener_->OnDone(totals_);
}

void Generation::CountEnd(const engine::Finish& finish) {
  if (setting_.stats == nullptr) return;
  if (finish.status.ok()) setting_.stats->CountCacheMiss(finish.cache_miss.reason);
  if (finish.reason != engine::FinishReason::kCancelled) return;
  const std::lock_guard lock(mutex_);
  if (cancelled_.has_value()) setting_.stats->ObserveCancel(setting_.clock->Now() - cancelled_at_);
}

void Generation::ReportFacts() {
  if (!setting_.on_facts) return;
  for (const Choice& choice : choices_) facts_.output_tokens += choice.processor->token_count();
  for (const PromptCache& prompt : prompts_) facts_.cached_tokens += prompt.tokens;
  setting_.on_facts(facts_);
}

void Generation::CountCached(size_t index, const engine::Finish& finish) {
  PromptCache& prompt = prompts_[index];
  if (prompt.is_known && prompt.tokens <= finish.cached_tokens) return;
  prompt = {true, finish.cached_tokens, finish.cache_miss};
}

void Generation::Deliver(size_t choice, Result<engine::OutputDelta> delta) {
  if (!delta.has_value()) return Fail(delta.error());
  if (delta->text.empty() && delta->tokens.empty()) return;
  listener_->OnDelta(choice, *std::move(delta));
}

void Generation::Fail(const Status& status) {
  failed_ = true;
  setting_.registry->Remove(registered_);
  CancelInEngine();
  facts_.reason = status.code() == Code::kDeadlineExceeded ? engine::FinishReason::kDeadline
                  : status.code() == Code::kCancelled      ? engine::FinishReason::kCancelled
                                                           : engine::FinishReason::kError;
  ReportFacts();
  listener_->OnError(status);
}

}  // namespace tessera::server
