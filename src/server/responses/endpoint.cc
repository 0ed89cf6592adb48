// SPDX-License-Identifier: Apache-2.0
#include "server/responses/endpoint.h"

#include <memory>
#include <utility>
#include <vector>

#include "server/event_stream.h"
#include "server/openai/choices.h"
#include "server/openai/error.h"
#include "server/responses/response_answer.h"
#include "server/responses/response_request.h"
#include "server/start_generation.h"

namespace tessera::server::responses {
namespace {

/// `stream` is null where the answer is one body.
class Responder : public GenerationListener {
 public:
  Responder(ResponseHead head, Reply reply, std::shared_ptr<EventStream> stream)
      : answer_(std::move(head)), reply_(std::move(reply)), stream_(std::move(stream)) {}

  void OnDelta(size_t, engine::OutputDelta delta) override {
    text_ += delta.text;
    if (stream_ == nullptr) return;
    Begin();
    if (!delta.text.empty()) stream_->Send(answer_.Delta(delta.text));
  }

  void OnChoiceEnd(size_t, engine::FinishReason reason) override { end_.reason = reason; }

  void OnDone(const GenerationTotals& totals) override {
    end_.output_tokens = totals.completion_tokens;
    end_.cached_tokens = totals.cached_tokens;
    if (stream_ == nullptr) {
      // A peer that went away meanwhile needs no answer.
      (void)reply_.Send(net::Response::Json(200, json::Serialize(answer_.Whole(text_, end_))));
      return;
    }
    Begin();
    for (const net::SseEvent& event : answer_.End(text_, end_)) stream_->Send(event);
    stream_->Finish();
  }

  void OnError(const Status& status) override {
    const openai::ApiError error = openai::FromStatus(status);
    if (stream_ == nullptr) {
      (void)reply_.Send(openai::ErrorResponse(error));
    } else if (!stream_->has_begun()) {
      stream_->SendWhole(openai::ErrorResponse(error));
    } else {
      Begin();
      stream_->Send(answer_.Fail(error));
      stream_->Finish();
    }
  }

 private:
  void Begin() {
    if (std::exchange(has_begun_, true)) return;
    for (const net::SseEvent& event : answer_.Begin()) stream_->Send(event);
  }

  ResponseAnswer answer_;
  const Reply reply_;
  const std::shared_ptr<EventStream> stream_;
  std::string text_;
  ResponseEnd end_;
  bool has_begun_ = false;
};

}  // namespace

void HandleResponses(const Context& context, const net::Request& request, const Reply& reply) {
  const TimePoint arrival = context.clock->Now();
  const int64_t max_model_len = context.engine->max_sequence_tokens();
  auto parsed = ReadResponseRequest(request.body, context.model, context.specials,
                                    context.clock->UnixSeconds(), max_model_len);
  if (!parsed.has_value()) {
    (void)reply.Send(openai::ErrorResponse(parsed.error()));
    return;
  }
  const openai::GenerationFields& fields = parsed->fields;
  context.warnings->Add(fields.warnings);
  const int64_t prompt_tokens = openai::Length(parsed->prompt);
  const int64_t max_tokens = fields.max_tokens.value_or(max_model_len - prompt_tokens);
  std::vector<ChoiceSpec> choices;
  choices.push_back(openai::MakeChoice(context, fields, parsed->prompt, 0, max_tokens, 0, arrival));
  const std::string id = openai::MakeId("resp_");
  auto stream = fields.stream ? std::make_shared<EventStream>(reply, context.clock) : nullptr;
  auto responder = std::make_unique<Responder>(ResponseHead{.id = id,
                                                            .item_id = openai::MakeId("msg_"),
                                                            .created = context.clock->UnixSeconds(),
                                                            .model = context.model.id,
                                                            .echo = std::move(parsed->echo),
                                                            .prompt_tokens = prompt_tokens,
                                                            .warnings = fields.warnings},
                                               reply, stream);
  if (const auto error =
          StartGeneration(context, reply, {id}, std::move(choices), std::move(responder), stream))
    (void)reply.Send(openai::ErrorResponse(*error));
}

}  // namespace tessera::server::responses
