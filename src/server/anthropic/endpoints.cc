// SPDX-License-Identifier: Apache-2.0
#include "server/anthropic/endpoints.h"

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "server/anthropic/error.h"
#include "server/anthropic/fields.h"
#include "server/anthropic/message_answer.h"
#include "server/anthropic/message_request.h"
#include "server/event_stream.h"
#include "server/openai/choices.h"
#include "server/openai/completion_request.h"
#include "server/start_generation.h"

namespace tessera::server::anthropic {
namespace {

void Refuse(const openai::ApiError& error, const Reply& reply) {
  (void)reply.Send(ErrorResponse(error, reply.request_id()));
}

/// What both ways of answering share: the end is put together from the listener's calls.
class Responder : public GenerationListener {
 public:
  Responder(MessageHead head, Reply reply) : head_(std::move(head)), reply_(std::move(reply)) {}

  void OnChoiceEnd(size_t, engine::FinishReason reason) override { end_.reason = reason; }
  void OnDone(const GenerationTotals& totals) override {
    end_.stop_sequence = totals.stop_strings.front();
    end_.output_tokens = totals.completion_tokens;
    end_.cached_tokens = totals.cached_tokens;
    Finish();
  }

 protected:
  virtual void Finish() = 0;

  const MessageHead head_;
  const Reply reply_;
  MessageEnd end_;
};

class WholeResponder : public Responder {
 public:
  using Responder::Responder;
  void OnDelta(size_t, engine::OutputDelta delta) override { text_ += delta.text; }
  void OnError(const Status& status) override { Refuse(openai::FromStatus(status), reply_); }

 private:
  void Finish() override {
    // A peer that went away meanwhile needs no answer.
    (void)reply_.Send(net::Response::Json(200, json::Serialize(WholeMessage(head_, text_, end_))));
  }

  std::string text_;
};

class StreamResponder : public Responder {
 public:
  StreamResponder(MessageHead head, Reply reply, std::shared_ptr<EventStream> stream)
      : Responder(std::move(head), std::move(reply)), stream_(std::move(stream)) {}

  void OnDelta(size_t, engine::OutputDelta delta) override {
    Begin();
    if (!delta.text.empty()) stream_->Send(TextEvent(delta.text));
  }
  void OnError(const Status& status) override {
    const openai::ApiError error = openai::FromStatus(status);
    if (!stream_->has_begun()) return stream_->SendWhole(ErrorResponse(error, reply_.request_id()));
    stream_->Send(
        {.event = "error", .data = json::Serialize(ErrorBody(error, reply_.request_id()))});
    stream_->Finish();
  }

 private:
  void Begin() {
    if (std::exchange(has_message_, true)) return;
    for (const net::SseEvent& event : BeginEvents(head_)) stream_->Send(event);
  }
  void Finish() override {
    Begin();
    for (const net::SseEvent& event : EndEvents(head_, end_)) stream_->Send(event);
    stream_->Finish();
  }

  const std::shared_ptr<EventStream> stream_;
  bool has_message_ = false;
};

/// Parts of that API which are asked for by header are not here.
void WarnOfBetas(const net::Request& request, std::vector<openai::Warning>* warnings) {
  if (const auto beta = request.headers.Find("anthropic-beta"))
    warnings->push_back({"unknown_field", "anthropic-beta",
                         fmt::format("the header anthropic-beta ({:.100}) was ignored", *beta)});
}

}  // namespace

void HandleMessages(const Context& context, const net::Request& request, const Reply& reply) {
  const TimePoint arrival = context.clock->Now();
  auto parsed = ReadMessageRequest(request.body, kMessages, context.model, context.specials,
                                   context.clock->UnixSeconds());
  if (!parsed.has_value()) return Refuse(parsed.error(), reply);
  openai::GenerationFields& fields = parsed->fields;
  const int64_t prompt_tokens = openai::Length(parsed->prompt);
  if (const auto error = openai::CheckLength(prompt_tokens, fields.max_tokens,
                                             context.engine->max_sequence_tokens(), "messages"))
    return Refuse(*error, reply);
  WarnOfBetas(request, &fields.warnings);
  context.warnings->Add(fields.warnings);
  std::vector<ChoiceSpec> choices;
  choices.push_back(
      openai::MakeChoice(context, fields, parsed->prompt, 0, *fields.max_tokens, 0, arrival));
  MessageHead head{.id = openai::MakeId("msg_"),
                   .model = context.model.id,
                   .prompt_tokens = prompt_tokens,
                   .warnings = fields.warnings};
  const std::string id = head.id;
  std::shared_ptr<EventStream> stream;
  std::unique_ptr<Responder> responder;
  if (fields.stream) {
    stream = std::make_shared<EventStream>(reply, context.clock);
    responder = std::make_unique<StreamResponder>(std::move(head), reply, stream);
  } else {
    responder = std::make_unique<WholeResponder>(std::move(head), reply);
  }
  if (const auto error =
          StartGeneration(context, reply, {id}, std::move(choices), std::move(responder), stream))
    Refuse(*error, reply);
}

void HandleCountTokens(const Context& context, const net::Request& request, const Reply& reply) {
  auto parsed = ReadMessageRequest(request.body, kCountTokens, context.model, context.specials,
                                   context.clock->UnixSeconds());
  if (!parsed.has_value()) return Refuse(parsed.error(), reply);
  std::vector<openai::Warning>& warnings = parsed->fields.warnings;
  WarnOfBetas(request, &warnings);
  context.warnings->Add(warnings);
  json::Object answer{{"input_tokens", openai::Length(parsed->prompt)}};
  if (!warnings.empty()) answer["warnings"] = openai::WarningsBody(warnings);
  (void)reply.Send(net::Response::Json(200, json::Serialize(answer)));
}

}  // namespace tessera::server::anthropic
