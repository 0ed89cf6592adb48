// SPDX-License-Identifier: Apache-2.0
#include "server/shortfin/generate_endpoint.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "server/event_stream.h"
#include "server/openai/error.h"
#include "server/shortfin/generate_request.h"
#include "server/start_generation.h"

namespace tessera::server::shortfin {
namespace {

net::Response ErrorResponse(const Status& status) {
  // Codes as the original names them; what it has no name for keeps ours.
  const openai::ApiError error = openai::FromStatus(status);
  const std::string code = status.code() == Code::kInvalidArgument     ? "INVALID_REQUEST_ARGS"
                           : status.code() == Code::kResourceExhausted ? "QUEUE_FULL"
                                                                       : error.code;
  net::Response response = openai::ErrorResponse(error);
  response.body = json::Serialize(json::Object{{"error", error.message}, {"code", code}});
  return response;
}

class Responder : public GenerationListener {
 public:
  /// `stream` is null where the answer is one body.
  Responder(GenerateRequest request, Reply reply, std::shared_ptr<EventStream> stream)
      : request_(std::move(request)),
        reply_(std::move(reply)),
        stream_(std::move(stream)),
        collected_(request_.prompts.size()) {}

  void OnDelta(size_t choice, engine::OutputDelta delta) override {
    if (stream_ != nullptr) {
      if (!delta.text.empty())
        stream_->SendData(json::Serialize(json::Object{
            {"rid", request_.prompts[choice].rid}, {"index", choice}, {"text", delta.text}}));
      return;
    }
    collected_[choice].text += delta.text;
    for (const engine::PlacedToken& token : delta.tokens)
      collected_[choice].ids.emplace_back(token.id);
  }

  void OnChoiceEnd(size_t, engine::FinishReason) override {}

  void OnDone(const GenerationTotals&) override {
    if (stream_ != nullptr) {
      stream_->SendData("[DONE]");
      stream_->Finish();
    } else {
      // Its errors mean that the peer has gone.
      (void)reply_.Send(
          net::Response::Json(200, json::Serialize(request_.return_ids ? IdsBody() : TextBody())));
    }
  }

  void OnError(const Status& status) override {
    net::Response response = ErrorResponse(status);
    if (stream_ == nullptr) {
      (void)reply_.Send(std::move(response));
    } else if (!stream_->has_begun()) {
      stream_->SendWhole(std::move(response));
    } else {
      stream_->SendData(response.body);
      stream_->Finish();
    }
  }

 private:
  struct Collected {
    std::string text;
    json::Array ids;
  };

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
  const std::shared_ptr<EventStream> stream_;
  std::vector<Collected> collected_;
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
  std::vector<std::string> ids;
  for (size_t i = 0; i < parsed->prompts.size(); ++i) {
    choices.push_back(MakeChoice(context, parsed->prompts[i], i, arrival));
    ids.push_back(parsed->prompts[i].rid);
  }
  auto stream = parsed->stream ? std::make_shared<EventStream>(reply, context.clock) : nullptr;
  auto responder = std::make_unique<Responder>(*std::move(parsed), reply, stream);
  const Status started = StartGeneration(context, reply, std::move(ids), std::move(choices),
                                         std::move(responder), stream);
  if (!started.ok()) (void)reply.Send(ErrorResponse(started));
}

}  // namespace tessera::server::shortfin
