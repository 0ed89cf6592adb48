// SPDX-License-Identifier: Apache-2.0
#include "server/chat/event_answer.h"

#include <span>
#include <utility>

namespace tessera::server::chat {
namespace {

class EventResponder : public GenerationListener {
 public:
  EventResponder(std::unique_ptr<EventAnswer> answer, Reply reply,
                 std::shared_ptr<EventStream> stream, WarningCounters* counters)
      : answer_(std::move(answer)),
        reply_(std::move(reply)),
        stream_(std::move(stream)),
        counters_(counters) {}

  void OnDelta(size_t, engine::OutputDelta delta) override {
    Write(answer_->mutable_parts().Read(delta));
  }
  bool IsComplete(size_t) const override { return answer_->parts().is_complete(); }
  void OnChoiceEnd(size_t, engine::FinishReason reason) override {
    ending_.reason = reason;
    Write(answer_->mutable_parts().ReadEnd());
    // Clients look for text in what holds nothing else.
    if (answer_->parts().parts().empty()) Write({answer_->mutable_parts().AddEmptyText()});
  }

  void OnDone(const GenerationTotals& totals) override {
    ending_.totals = totals;
    answer_->parts().CountCalls(counters_);
    if (auto warning = answer_->parts().ProblemWarning(answer_->param())) {
      counters_->Add(std::span(&*warning, 1));
      ending_.warnings.push_back(*std::move(warning));
    }
    if (stream_ == nullptr) {
      // A peer that went away meanwhile needs no answer.
      (void)reply_.Send(net::Response::Json(200, json::Serialize(answer_->Whole(ending_))));
      return;
    }
    EventAnswer::Events events;
    answer_->Close(open_, ending_.reason == engine::FinishReason::kLength, &events);
    answer_->End(ending_, &events);
    Send(events);
    stream_->Finish();
  }

  void OnError(const Status& status) override {
    const openai::ApiError error = openai::FromStatus(status);
    if (stream_ == nullptr) {
      (void)reply_.Send(answer_->Refusal(error));
    } else if (!stream_->has_begun()) {
      stream_->SendWhole(answer_->Refusal(error));
    } else {
      EventAnswer::Events events;
      Begin(&events);
      answer_->Fail(error, &events);
      Send(events);
      stream_->Finish();
    }
  }

 private:
  void Begin(EventAnswer::Events* events) {
    if (!std::exchange(has_begun_, true)) answer_->Begin(events);
  }

  void Write(const std::vector<AnswerParts::Step>& steps) {
    if (stream_ == nullptr) return;
    EventAnswer::Events events;
    Begin(&events);
    for (const AnswerParts::Step& step : steps) {
      if (step.begins) {
        if (step.part > 0) answer_->Close(open_, false, &events);
        open_ = step.part;
        answer_->Open(open_, &events);
      }
      if (!step.text.empty()) answer_->Extend(step.part, step.text, &events);
    }
    Send(events);
  }

  void Send(const EventAnswer::Events& events) const {
    for (const net::SseEvent& event : events) stream_->Send(event);
  }

  const std::unique_ptr<EventAnswer> answer_;
  const Reply reply_;
  const std::shared_ptr<EventStream> stream_;
  WarningCounters* const counters_;
  Ending ending_;
  bool has_begun_ = false;
  size_t open_ = 0;  // The part that goes on.
};

}  // namespace

std::unique_ptr<GenerationListener> MakeEventResponder(std::unique_ptr<EventAnswer> answer,
                                                       Reply reply,
                                                       std::shared_ptr<EventStream> stream,
                                                       WarningCounters* counters) {
  return std::make_unique<EventResponder>(std::move(answer), std::move(reply), std::move(stream),
                                          counters);
}

}  // namespace tessera::server::chat
