// SPDX-License-Identifier: Apache-2.0
#include "server/access/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/forwarding_listener.h"

namespace tessera::server {
namespace {

/// Stands between a Generation and the listener that writes the answer. Task thread, but for its
/// destruction.
class Meter : public ForwardingListener {
 public:
  Meter(std::unique_ptr<GenerationListener> listener, std::shared_ptr<KeyUsage> usage,
        int64_t prompt_tokens)
      : ForwardingListener(std::move(listener)),
        usage_(std::move(usage)),
        prompt_tokens_(prompt_tokens) {}
  ~Meter() override {
    // Nobody called: the engine took nothing.
    if (!is_over_) usage_->End(has_begun_ ? 0 : prompt_tokens_);
  }
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  void OnPrefill(size_t choice, const engine::PrefillProgress& progress) override {
    has_begun_ = true;
    ForwardingListener::OnPrefill(choice, progress);
  }
  void OnEmbedding(size_t choice, std::vector<float> pooled) override {
    has_begun_ = true;
    ForwardingListener::OnEmbedding(choice, std::move(pooled));
  }
  void OnPrompt(size_t choice, engine::PromptLogprobs logprobs) override {
    has_begun_ = true;
    ForwardingListener::OnPrompt(choice, std::move(logprobs));
  }
  void OnDelta(size_t choice, engine::OutputDelta delta) override {
    has_begun_ = true;
    Charge(charged_ + std::ssize(delta.tokens));
    ForwardingListener::OnDelta(choice, std::move(delta));
  }
  void OnChoiceEnd(size_t choice, engine::FinishReason reason) override {
    has_begun_ = true;
    ForwardingListener::OnChoiceEnd(choice, reason);
  }
  void OnDone(const GenerationTotals& totals) override {
    // Deltas leave out end tokens and what a stop string cut off.
    Charge(std::max(charged_, totals.completion_tokens));
    End();  // First: whoever has the answer may ask again.
    ForwardingListener::OnDone(totals);
  }
  void OnError(const Status& status) override {
    End();
    ForwardingListener::OnError(status);
  }

 private:
  void Charge(int64_t total) {
    if (total > charged_) usage_->ChargeOutput(total - charged_);
    charged_ = total;
  }
  void End() {
    if (!std::exchange(is_over_, true)) usage_->End();
  }

  const std::shared_ptr<KeyUsage> usage_;
  const int64_t prompt_tokens_;
  int64_t charged_ = 0;
  bool has_begun_ = false;
  bool is_over_ = false;
};

/// Each prompt once, whatever its number of choices.
int64_t PromptTokens(const std::vector<ChoiceSpec>& choices) {
  int64_t tokens = 0;
  std::optional<size_t> last;
  for (const ChoiceSpec& choice : choices) {
    if (choice.prompt != last) tokens += std::ssize(choice.request.prompt);
    last = choice.prompt;
  }
  return tokens;
}

std::optional<Refusal> CheckPriority(const ApiKey& key, int32_t asked) {
  if (!key.priority.has_value() || asked >= *key.priority) return std::nullopt;
  return Refusal{.http_status = 403,
                 .message = fmt::format("priority is {}, but the API key '{}' may ask for {} or "
                                        "more (lesser ones come first)",
                                        asked, key.name, *key.priority),
                 .type = "permission_error",
                 .code = "priority_not_allowed",
                 .param = "priority"};
}

}  // namespace

std::optional<Refusal> AdmitChoices(const Caller& caller, std::vector<ChoiceSpec>* choices,
                                    std::unique_ptr<GenerationListener>* listener) {
  const int32_t standard = caller.key == nullptr ? 0 : caller.key->priority.value_or(0);
  for (ChoiceSpec& choice : *choices) {
    choice.request.priority = choice.priority.value_or(standard);
    choice.request.client = caller.client();
    if (caller.key == nullptr) continue;
    if (auto refusal = CheckPriority(*caller.key, choice.request.priority)) return refusal;
  }
  if (caller.usage == nullptr) return std::nullopt;
  const int64_t prompt_tokens = PromptTokens(*choices);
  if (auto refusal = caller.usage->Begin(prompt_tokens)) return refusal;
  *listener = std::make_unique<Meter>(std::move(*listener), caller.usage, prompt_tokens);
  return std::nullopt;
}

}  // namespace tessera::server
