// SPDX-License-Identifier: Apache-2.0
#include "server/form_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "server/forwarding_listener.h"
#include "server/limits.h"
#include "text/reasoning_parser.h"

namespace tessera::server {
namespace {

/// Outlives its generation while verdicts are awaited.
class FormCheck : public ForwardingListener, public std::enable_shared_from_this<FormCheck> {
 public:
  FormCheck(std::unique_ptr<GenerationListener> listener, const std::vector<ChoiceSpec>& choices,
            const FormSetting& setting)
      : ForwardingListener(std::move(listener)), setting_(setting) {
    for (const ChoiceSpec& choice : choices) {
      Choice& added = choices_.emplace_back();
      added.grammar = choice.grammar;
      added.may_be_cut = choice.may_be_cut;
      if (choice.thoughts.has_value()) added.thoughts.emplace(*choice.thoughts);
    }
  }

  void OnStart(FailGeneration fail) override {
    fail_ = fail;
    ForwardingListener::OnStart(std::move(fail));
  }
  void OnPrefill(size_t choice, const engine::PrefillProgress& progress) override {
    if (!is_over_) ForwardingListener::OnPrefill(choice, progress);
  }
  void OnPrompt(size_t choice, engine::PromptLogprobs logprobs) override {
    if (!is_over_) ForwardingListener::OnPrompt(choice, std::move(logprobs));
  }
  void OnDelta(size_t choice, engine::OutputDelta delta) override {
    if (is_over_) return;
    choices_[choice].Append(delta.text);
    ForwardingListener::OnDelta(choice, std::move(delta));
  }
  void OnChoiceScore(size_t choice, double mean_logprob) override {
    if (!is_over_) ForwardingListener::OnChoiceScore(choice, mean_logprob);
  }
  void OnChoiceEnd(size_t choice, engine::FinishReason reason) override {
    if (is_over_) return;
    const bool has_form = choices_[choice].grammar != nullptr;
    if (has_form && reason == engine::FinishReason::kStop) return Ask(choice);
    if (has_form) setting_.counters->Add({.cut = 1});
    ForwardingListener::OnChoiceEnd(choice, reason);
  }
  void OnDone(const GenerationTotals& totals) override {
    totals_ = totals;
    EndIfAllIsKnown();
  }
  void OnError(const Status& status) override {
    if (std::exchange(is_over_, true)) return;
    ForwardingListener::OnError(status);
  }

 private:
  struct Choice {
    std::shared_ptr<const text::Grammar> grammar;
    bool may_be_cut = false;
    std::optional<text::ReasoningParser> thoughts;  // Before the text that has the form.
    std::string text;

    void Append(std::string_view more) {
      if (grammar == nullptr) return;
      if (!thoughts.has_value()) {
        text += more;
        return;
      }
      text::ReasoningParser::Delta delta;
      thoughts->Push(more, &delta);
      text += delta.text;
    }
    std::string Take() {
      text::ReasoningParser::Delta delta;
      if (thoughts.has_value()) thoughts->Finish(&delta);
      return std::move(text) + delta.text;
    }
  };

  void Ask(size_t choice) {
    ++awaited_;
    const TimePoint asked = setting_.clock->Now();
    auto look = [self = shared_from_this(), choice, asked, grammar = choices_[choice].grammar,
                 text = choices_[choice].Take()] {
      const FormSetting& setting = self->setting_;
      Status verdict = setting.clock->Now() - asked > kFormWaitMax
                           ? ResourceExhausted("others took too long")
                           : setting.validate(*grammar, text);
      setting.tasks->Post(
          [self, choice, verdict = std::move(verdict)] { self->OnVerdict(choice, verdict); });
    };
    if (!setting_.worker->Post(std::move(look)))
      OnVerdict(choice, ResourceExhausted("the server stops"));
  }

  void OnVerdict(size_t choice, const Status& verdict) {
    --awaited_;
    if (verdict.ok()) {
      setting_.counters->Add({.valid = 1});
    } else if (verdict.code() == Code::kResourceExhausted) {
      setting_.counters->Add({.skipped = 1});
    } else if (choices_[choice].may_be_cut) {
      setting_.counters->Add({.cut = 1});
    } else {
      setting_.counters->Add({.invalid = 1});
      return Fail(
          Internal(fmt::format("the answer does not have the form that was asked for, which is a "
                               "bug of this server: {}",
                               verdict.message())));
    }
    if (is_over_) return;
    ForwardingListener::OnChoiceEnd(choice, engine::FinishReason::kStop);
    EndIfAllIsKnown();
  }

  /// Ends the other choices as well; a generation that is over already cannot fail any more.
  void Fail(const Status& why) {
    if (is_over_) return;
    if (!fail_ || !fail_(why)) OnError(why);
  }

  void EndIfAllIsKnown() {
    if (is_over_ || awaited_ > 0 || !totals_.has_value()) return;
    is_over_ = true;
    ForwardingListener::OnDone(*totals_);
  }

  const FormSetting setting_;
  FailGeneration fail_;
  std::vector<Choice> choices_;
  size_t awaited_ = 0;                      // Verdicts.
  std::optional<GenerationTotals> totals_;  // The generation is done.
  bool is_over_ = false;                    // The listener has heard its last.
};

}  // namespace

void FormCounters::Add(const Counts& more) {
  const std::lock_guard lock(mutex_);
  counts_.valid += more.valid;
  counts_.cut += more.cut;
  counts_.invalid += more.invalid;
  counts_.skipped += more.skipped;
}

FormCounters::Counts FormCounters::Snapshot() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

Result<std::unique_ptr<FormWorker>> FormWorker::Start() {
  TESSERA_ASSIGN_OR_RETURN(auto thread, TaskThread::Start());
  return std::unique_ptr<FormWorker>(new FormWorker(std::move(thread)));
}

bool FormWorker::Post(TaskThread::Task task) {
  const std::lock_guard lock(mutex_);
  if (thread_ == nullptr) return false;
  thread_->Post(std::move(task));
  return true;
}

void FormWorker::Stop() {
  std::unique_ptr<TaskThread> thread;
  {
    const std::lock_guard lock(mutex_);
    thread = std::move(thread_);
  }
}

std::unique_ptr<GenerationListener> MakeFormCheck(std::unique_ptr<GenerationListener> listener,
                                                  const std::vector<ChoiceSpec>& choices,
                                                  const FormSetting& setting) {
  const auto has_form = [](const ChoiceSpec& choice) { return choice.grammar != nullptr; };
  if (std::ranges::none_of(choices, has_form)) return listener;
  return std::make_unique<ForwardingListener>(
      std::make_shared<FormCheck>(std::move(listener), choices, setting));
}

}  // namespace tessera::server
