// SPDX-License-Identifier: Apache-2.0
#include "server/form_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace tessera::server {
namespace {

class FormCheck : public GenerationListener {
 public:
  FormCheck(std::unique_ptr<GenerationListener> listener, const std::vector<ChoiceSpec>& choices,
            FormCounters* counters)
      : listener_(std::move(listener)), counters_(counters) {
    for (const ChoiceSpec& choice : choices)
      choices_.push_back({.grammar = choice.grammar, .may_be_cut = choice.may_be_cut, .text = {}});
  }

  void OnPrompt(size_t choice, engine::PromptLogprobs logprobs) override {
    if (!has_failed_) listener_->OnPrompt(choice, std::move(logprobs));
  }
  void OnDelta(size_t choice, engine::OutputDelta delta) override {
    if (has_failed_) return;
    choices_[choice].text += delta.text;
    listener_->OnDelta(choice, std::move(delta));
  }
  bool IsComplete(size_t choice) const override { return listener_->IsComplete(choice); }
  void OnChoiceScore(size_t choice, double mean_logprob) override {
    if (!has_failed_) listener_->OnChoiceScore(choice, mean_logprob);
  }
  void OnChoiceEnd(size_t choice, engine::FinishReason reason) override {
    if (has_failed_) return;
    if (const Status status = Check(choices_[choice], reason); !status.ok()) {
      has_failed_ = true;
      return listener_->OnError(status);
    }
    listener_->OnChoiceEnd(choice, reason);
  }
  void OnDone(const GenerationTotals& totals) override {
    if (!has_failed_) listener_->OnDone(totals);
  }
  void OnError(const Status& status) override {
    if (!has_failed_) listener_->OnError(status);
  }

 private:
  struct Choice {
    std::shared_ptr<const text::Grammar> grammar;
    bool may_be_cut = false;
    std::string text;
  };

  Status Check(const Choice& choice, engine::FinishReason reason) {
    if (choice.grammar == nullptr) return {};
    if (reason != engine::FinishReason::kStop) {
      counters_->Add({.cut = 1});
      return {};
    }
    const Status status = choice.grammar->Validate(choice.text);
    if (status.ok()) {
      counters_->Add({.valid = 1});
    } else if (choice.may_be_cut) {
      counters_->Add({.cut = 1});
    } else {
      counters_->Add({.invalid = 1});
      return Internal(
          fmt::format("the answer does not have the form that was asked for, which is "
                      "a bug of this server: {}",
                      status.message()));
    }
    return {};
  }

  const std::unique_ptr<GenerationListener> listener_;
  FormCounters* const counters_;
  std::vector<Choice> choices_;
  bool has_failed_ = false;
};

}  // namespace

void FormCounters::Add(const Counts& more) {
  const std::lock_guard lock(mutex_);
  counts_.valid += more.valid;
  counts_.cut += more.cut;
  counts_.invalid += more.invalid;
}

FormCounters::Counts FormCounters::Snapshot() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::unique_ptr<GenerationListener> MakeFormCheck(std::unique_ptr<GenerationListener> listener,
                                                  const std::vector<ChoiceSpec>& choices,
                                                  FormCounters* counters) {
  const auto has_form = [](const ChoiceSpec& choice) { return choice.grammar != nullptr; };
  if (std::ranges::none_of(choices, has_form)) return listener;
  return std::make_unique<FormCheck>(std::move(listener), choices, counters);
}

}  // namespace tessera::server
