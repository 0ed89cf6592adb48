// SPDX-License-Identifier: Apache-2.0
#include "server/openai/responder.h"

#include <utility>
#include <vector>

#include "server/openai/error.h"

namespace tessera::server::openai {
namespace {

Usage UsageOf(int64_t prompt_tokens, const GenerationTotals& totals) {
  return {prompt_tokens, totals.completion_tokens, totals.cached_tokens, totals.cache_miss};
}

class WholeResponder : public GenerationListener {
 public:
  WholeResponder(std::unique_ptr<Answer> answer, int64_t prompt_tokens, Reply reply)
      : answer_(std::move(answer)), prompt_tokens_(prompt_tokens), reply_(std::move(reply)) {}

  void OnPrompt(size_t choice, engine::PromptLogprobs logprobs) override {
    answer_->SetPrompt(choice, std::move(logprobs));
  }
  void OnDelta(size_t choice, engine::OutputDelta delta) override {
    answer_->Collect(choice, std::move(delta));
  }
  void OnChoiceEnd(size_t choice, engine::FinishReason reason) override {
    answer_->End(choice, reason);
  }
  bool IsComplete(size_t choice) const override { return answer_->IsComplete(choice); }
  void OnDone(const GenerationTotals& totals) override {
    const json::Object body = answer_->Whole(UsageOf(prompt_tokens_, totals));
    // A peer that went away meanwhile needs no answer.
    (void)reply_.Send(net::Response::Json(200, json::Serialize(body)));
  }
  void OnError(const Status& status) override {
    (void)reply_.Send(ErrorResponse(FromStatus(status)));
  }

 private:
  const std::unique_ptr<Answer> answer_;
  const int64_t prompt_tokens_;
  const Reply reply_;
};

class StreamResponder : public GenerationListener {
 public:
  StreamResponder(std::unique_ptr<Answer> answer, int64_t prompt_tokens, size_t choices,
                  std::shared_ptr<EventStream> stream)
      : answer_(std::move(answer)),
        prompt_tokens_(prompt_tokens),
        stream_(std::move(stream)),
        begun_(choices, false),
        open_(choices) {}

  void OnPrefill(size_t choice, const engine::PrefillProgress& progress) override {
    Write(answer_->ProgressChunk(choice, progress));
  }
  void OnPrompt(size_t choice, engine::PromptLogprobs logprobs) override {
    answer_->SetPrompt(choice, std::move(logprobs));
  }
  void OnDelta(size_t choice, engine::OutputDelta delta) override {
    Begin(choice);
    for (const json::Object& chunk : answer_->Chunk(choice, std::move(delta))) Write(chunk);
  }

  void OnChoiceEnd(size_t choice, engine::FinishReason reason) override {
    Begin(choice);
    for (const json::Object& chunk : answer_->Rest(choice)) Write(chunk);
    json::Object chunk = answer_->LastChunk(choice, reason);
    if (--open_ == 0 && !answer_->head().include_usage) answer_->AddWarnings(&chunk);
    Write(chunk);
  }

  bool IsComplete(size_t choice) const override { return answer_->IsComplete(choice); }

  void OnDone(const GenerationTotals& totals) override {
    if (answer_->head().include_usage) {
      json::Object chunk = answer_->UsageChunk(UsageOf(prompt_tokens_, totals));
      answer_->AddWarnings(&chunk);
      Write(chunk);
    }
    stream_->SendData("[DONE]");
    stream_->Finish();
  }

  void OnError(const Status& status) override {
    const ApiError error = FromStatus(status);
    if (!stream_->has_begun()) return stream_->SendWhole(ErrorResponse(error));
    Write(ErrorBody(error));
    stream_->Finish();
  }

 private:
  void Begin(size_t choice) {
    if (begun_[choice]) return;
    begun_[choice] = true;
    for (const json::Object& chunk : answer_->Begin(choice)) Write(chunk);
  }

  void Write(const json::Object& chunk) const { stream_->SendData(json::Serialize(chunk)); }

  const std::unique_ptr<Answer> answer_;
  const int64_t prompt_tokens_;
  const std::shared_ptr<EventStream> stream_;
  std::vector<bool> begun_;
  size_t open_;
};

}  // namespace

std::unique_ptr<GenerationListener> MakeWholeResponder(std::unique_ptr<Answer> answer,
                                                       int64_t prompt_tokens, Reply reply) {
  return std::make_unique<WholeResponder>(std::move(answer), prompt_tokens, std::move(reply));
}

std::unique_ptr<GenerationListener> MakeStreamResponder(std::unique_ptr<Answer> answer,
                                                        int64_t prompt_tokens, size_t choices,
                                                        std::shared_ptr<EventStream> stream) {
  return std::make_unique<StreamResponder>(std::move(answer), prompt_tokens, choices,
                                           std::move(stream));
}

}  // namespace tessera::server::openai
