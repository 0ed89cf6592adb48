// SPDX-License-Identifier: Apache-2.0
#include "server/openai/responder.h"

#include <utility>
#include <vector>

#include "net/sse.h"
#include "server/openai/error.h"

namespace tessera::server::openai {
namespace {

/// A request that the server itself cut short (shutdown) is not the client's doing.
ApiError ErrorOf(const Status& status) {
  return FromStatus(status.code() == Code::kCancelled ? Unavailable(status.message()) : status);
}

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
  void OnDone(const GenerationTotals& totals) override {
    const json::Object body = answer_->Whole(UsageOf(prompt_tokens_, totals));
    // A peer that went away meanwhile needs no answer.
    (void)reply_.Send(net::Response::Json(200, json::Serialize(body)));
  }
  void OnError(const Status& status) override { (void)reply_.Send(ErrorResponse(ErrorOf(status))); }

 private:
  const std::unique_ptr<Answer> answer_;
  const int64_t prompt_tokens_;
  const Reply reply_;
};

class StreamResponder : public GenerationListener {
 public:
  StreamResponder(std::unique_ptr<Answer> answer, int64_t prompt_tokens, size_t choices,
                  Reply reply)
      : answer_(std::move(answer)),
        prompt_tokens_(prompt_tokens),
        reply_(std::move(reply)),
        begun_(choices, false),
        open_(choices) {}

  void OnPrompt(size_t choice, engine::PromptLogprobs logprobs) override {
    answer_->SetPrompt(choice, std::move(logprobs));
  }
  void OnDelta(size_t choice, engine::OutputDelta delta) override {
    Begin(choice);
    for (const json::Object& chunk : answer_->Chunk(choice, std::move(delta))) Write(chunk);
  }

  void OnChoiceEnd(size_t choice, engine::FinishReason reason) override {
    Begin(choice);
    json::Object chunk = answer_->LastChunk(choice, reason);
    if (--open_ == 0 && !answer_->head().include_usage) answer_->AddWarnings(&chunk);
    Write(chunk);
  }

  void OnDone(const GenerationTotals& totals) override {
    if (answer_->head().include_usage) {
      json::Object chunk = answer_->UsageChunk(UsageOf(prompt_tokens_, totals));
      answer_->AddWarnings(&chunk);
      Write(chunk);
    }
    // Its errors mean that the peer has gone; its disconnect cancels the generation.
    (void)reply_.Write(net::EncodeSseData("[DONE]"));
    (void)reply_.Finish();
  }

  void OnError(const Status& status) override {
    const ApiError error = ErrorOf(status);
    if (!started_) {
      (void)reply_.Send(ErrorResponse(error));
      return;
    }
    Write(ErrorBody(error));
    (void)reply_.Finish();
  }

 private:
  void Begin(size_t choice) {
    if (!started_) {
      started_ = true;
      (void)reply_.StartStream(200, {{"Content-Type", "text/event-stream; charset=utf-8"},
                                     {"Cache-Control", "no-cache"},
                                     {"X-Accel-Buffering", "no"}});
    }
    if (begun_[choice]) return;
    begun_[choice] = true;
    for (const json::Object& chunk : answer_->Begin(choice)) Write(chunk);
  }

  void Write(const json::Object& chunk) const {
    (void)reply_.Write(net::EncodeSseData(json::Serialize(chunk)));
  }

  const std::unique_ptr<Answer> answer_;
  const int64_t prompt_tokens_;
  const Reply reply_;
  std::vector<bool> begun_;
  size_t open_;
  bool started_ = false;
};

}  // namespace

std::unique_ptr<GenerationListener> MakeWholeResponder(std::unique_ptr<Answer> answer,
                                                       int64_t prompt_tokens, Reply reply) {
  return std::make_unique<WholeResponder>(std::move(answer), prompt_tokens, std::move(reply));
}

std::unique_ptr<GenerationListener> MakeStreamResponder(std::unique_ptr<Answer> answer,
                                                        int64_t prompt_tokens, size_t choices,
                                                        Reply reply) {
  return std::make_unique<StreamResponder>(std::move(answer), prompt_tokens, choices,
                                           std::move(reply));
}

}  // namespace tessera::server::openai
