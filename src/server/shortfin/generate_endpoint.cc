// SPDX-License-Identifier: Apache-2.0
#include "server/shortfin/generate_endpoint.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "net/sse.h"
#include "server/generation.h"
#include "server/openai/error.h"
#include "server/shortfin/generate_request.h"

namespace tessera::server::shortfin {
namespace {

net::Response ErrorResponse(const Status& status) {
  // Codes as the original names them; what it has no name for keeps ours.
  const openai::ApiError error = openai::FromStatus(
      status.code() == Code::kCancelled ? Unavailable(status.message()) : status);
  const std::string code = status.code() == Code::kInvalidArgument     ? "INVALID_REQUEST_ARGS"
                           : status.code() == Code::kResourceExhausted ? "QUEUE_FULL"
                                                                       : error.code;
  net::Response response = openai::ErrorResponse(error);
  response.body = json::Serialize(json::Object{{"error", error.message}, {"code", code}});
  return response;
}

class Responder : public GenerationListener {
 public:
  Responder(GenerateRequest request, Reply reply)
      : request_(std::move(request)),
        reply_(std::move(reply)),
        collected_(request_.prompts.size()) {}

  void OnDelta(size_t choice, engine::OutputDelta delta) override {
    if (request_.stream) {
      if (delta.text.empty()) return;
      Begin();
      Write({{"rid", request_.prompts[choice].rid}, {"index", choice}, {"text", delta.text}});
      return;
    }
    collected_[choice].text += delta.text;
    for (const engine::PlacedToken& token : delta.tokens)
      collected_[choice].ids.emplace_back(token.id);
  }

  void OnChoiceEnd(size_t, engine::FinishReason) override {}

  void OnDone(const GenerationTotals&) override {
    // Errors of the reply mean that the peer has gone.
    if (request_.stream) {
      Begin();
      (void)reply_.Write(net::EncodeSseData("[DONE]"));
      (void)reply_.Finish();
    } else {
      (void)reply_.Send(
          net::Response::Json(200, json::Serialize(request_.return_ids ? IdsBody() : TextBody())));
    }
  }

  void OnError(const Status& status) override {
    const net::Response response = ErrorResponse(status);
    if (!started_) {
      (void)reply_.Send(response);
      return;
    }
    (void)reply_.Write(net::EncodeSseData(response.body));
    (void)reply_.Finish();
  }

 private:
  struct Collected {
    std::string text;
    json::Array ids;
  };

  void Begin() {
    if (std::exchange(started_, true)) return;
    (void)reply_.StartStream(
        200, {{"Content-Type", "text/event-stream; charset=utf-8"}, {"Cache-Control", "no-cache"}});
  }
  void Write(const json::Object& event) const {
    (void)reply_.Write(net::EncodeSseData(json::Serialize(event)));
  }

  json::Value TextBody() const {
    json::Array rows;
    for (size_t i = 0; i < collected_.size(); ++i) {
      json::Object row;
      row["prompt"] = request_.prompts[i].text.has_value() ? json::Value(*request_.prompts[i].text)
                                                           : json::Value(nullptr);
      json::Array texts;
      texts.push_back(json::Object{{"text", collected_[i].text}});
      row["responses"] = std::move(texts);
      rows.push_back(std::move(row));
    }
    json::Object body;
    body["responses"] = std::move(rows);
    if (!request_.warnings.empty()) body["warnings"] = openai::WarningsBody(request_.warnings);
    return body;
  }

  json::Value IdsBody() const {
    if (!request_.is_batch) return collected_.front().ids;
    json::Array rows;
    for (const Collected& collected : collected_) rows.push_back(collected.ids);
    return rows;
  }

  const GenerateRequest request_;
  const Reply reply_;
  std::vector<Collected> collected_;
  bool started_ = false;
};

ChoiceSpec MakeChoice(const Context& context, const GeneratePrompt& prompt, size_t index,
                      TimePoint arrival) {
  engine::Request request;
  request.prompt = prompt.ids;
  request.sampling = prompt.sampling;
  request.stop = {.max_tokens = prompt.max_tokens,
                  .min_tokens = 0,
                  .eos_ids = context.model.eos_ids,
                  .stop_ids = {}};
  request.arrival = arrival;
  auto processor = std::make_unique<engine::OutputProcessor>(
      context.model.make_detokenizer(/*skip_special=*/true), engine::OutputOptions{},
      std::span(prompt.ids).last(std::min(prompt.ids.size(), kPromptTail)));
  return {std::move(request), std::move(processor), index};
}

}  // namespace

void HandleGenerate(const Context& context, const net::Request& request, const Reply& reply) {
  const TimePoint arrival = context.clock->Now();
  auto parsed =
      ReadGenerateRequest(request.body, context.model, context.engine->max_sequence_tokens());
  if (!parsed.has_value()) {
    // Too deep, too long: the client's to change as well.
    (void)reply.Send(ErrorResponse(parsed.error().code() == Code::kResourceExhausted
                                       ? InvalidArgument(parsed.error().ToString())
                                       : parsed.error()));
    return;
  }
  context.warnings->Add(parsed->warnings);
  std::vector<ChoiceSpec> choices;
  for (size_t i = 0; i < parsed->prompts.size(); ++i)
    choices.push_back(MakeChoice(context, parsed->prompts[i], i, arrival));
  auto responder = std::make_unique<Responder>(*std::move(parsed), reply);
  auto generation =
      Generation::Start(context.engine, context.tasks, std::move(choices), std::move(responder));
  if (!generation.has_value()) {
    (void)reply.Send(ErrorResponse(generation.error()));
    return;
  }
  reply.OnDisconnect([weak = std::weak_ptr<Generation>(*generation)] {
    if (const auto alive = weak.lock()) alive->Cancel();
  });
}

}  // namespace tessera::server::shortfin
