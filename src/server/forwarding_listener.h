// SPDX-License-Identifier: Apache-2.0
//
// ForwardingListener: hands every event on to another listener. Base of those that stand between a
// Generation and the listener that writes the answer: what they do not override is passed on, so
// that an event which is added later passes them too. Threads: as GenerationListener.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "server/generation.h"

namespace tessera::server {

class ForwardingListener : public GenerationListener {
 public:
  explicit ForwardingListener(std::shared_ptr<GenerationListener> next) : next_(std::move(next)) {}

  void OnStart(FailGeneration fail) override { next_->OnStart(std::move(fail)); }
  void OnPrefill(size_t choice, const engine::PrefillProgress& progress) override {
    next_->OnPrefill(choice, progress);
  }
  void OnEmbedding(size_t choice, std::vector<float> pooled) override {
    next_->OnEmbedding(choice, std::move(pooled));
  }
  void OnPrompt(size_t choice, engine::PromptLogprobs logprobs) override {
    next_->OnPrompt(choice, std::move(logprobs));
  }
  void OnDelta(size_t choice, engine::OutputDelta delta) override {
    next_->OnDelta(choice, std::move(delta));
  }
  bool IsComplete(size_t choice) const override { return next_->IsComplete(choice); }
  void OnChoiceScore(size_t choice, double mean_logprob) override {
    next_->OnChoiceScore(choice, mean_logprob);
  }
  void OnChoiceEnd(size_t choice, engine::FinishReason reason) override {
    next_->OnChoiceEnd(choice, reason);
  }
  void OnDone(const GenerationTotals& totals) override { next_->OnDone(totals); }
  void OnError(const Status& status) override { next_->OnError(status); }

 private:
  const std::shared_ptr<GenerationListener> next_;
};

}  // namespace tessera::server
