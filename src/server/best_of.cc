// SPDX-License-Identifier: Apache-2.0
#include "server/best_of.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "server/forwarding_listener.h"

namespace tessera::server {
namespace {

class BestOf : public ForwardingListener {
 public:
  BestOf(std::unique_ptr<GenerationListener> listener, size_t prompts, size_t generated,
         size_t kept)
      : ForwardingListener(std::move(listener)),
        generated_(generated),
        kept_(kept),
        choices_(prompts * generated) {
    TESSERA_CHECK(kept >= 1 && kept < generated);
  }

  /// Of generated choices, of which it is not known yet which ones are passed on.
  void OnPrefill(size_t /*choice*/, const engine::PrefillProgress& /*progress*/) override {}
  bool IsComplete(size_t /*choice*/) const override { return false; }
  void OnPrompt(size_t choice, engine::PromptLogprobs logprobs) override {
    choices_[choice].prompt = std::move(logprobs);
    choices_[choice].has_prompt = true;
  }
  void OnDelta(size_t choice, engine::OutputDelta delta) override {
    choices_[choice].deltas.push_back(std::move(delta));
  }
  void OnChoiceScore(size_t choice, double mean_logprob) override {
    choices_[choice].score = mean_logprob;
  }
  void OnChoiceEnd(size_t choice, engine::FinishReason reason) override {
    choices_[choice].reason = reason;
  }
  void OnDone(const GenerationTotals& totals) override {
    GenerationTotals kept = totals;
    kept.stop_strings.clear();
    for (size_t begin = 0; begin < choices_.size(); begin += generated_) {
      for (const size_t choice : Best(begin)) {
        PassOn(choice, kept.stop_strings.size());
        kept.stop_strings.push_back(totals.stop_strings[choice]);
      }
    }
    ForwardingListener::OnDone(kept);
  }

 private:
  struct Choice {
    std::vector<engine::OutputDelta> deltas;
    engine::PromptLogprobs prompt;
    bool has_prompt = false;
    double score = 0;
    engine::FinishReason reason = engine::FinishReason::kStop;
  };

  std::vector<size_t> Best(size_t begin) const {
    std::vector<size_t> order(generated_);
    std::iota(order.begin(), order.end(), begin);
    std::ranges::stable_sort(order, std::greater<>(),
                             [this](size_t choice) { return choices_[choice].score; });
    order.resize(kept_);
    return order;
  }

  void PassOn(size_t choice, size_t number) {
    Choice& kept = choices_[choice];
    if (kept.has_prompt) ForwardingListener::OnPrompt(number, std::move(kept.prompt));
    for (engine::OutputDelta& delta : kept.deltas)
      ForwardingListener::OnDelta(number, std::move(delta));
    ForwardingListener::OnChoiceScore(number, kept.score);
    ForwardingListener::OnChoiceEnd(number, kept.reason);
  }

  const size_t generated_;
  const size_t kept_;
  std::vector<Choice> choices_;
};

}  // namespace

std::unique_ptr<GenerationListener> MakeBestOf(std::unique_ptr<GenerationListener> listener,
                                               size_t prompts, size_t generated, size_t kept) {
  return std::make_unique<BestOf>(std::move(listener), prompts, generated, kept);
}

}  // namespace tessera::server
