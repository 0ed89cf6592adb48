// SPDX-License-Identifier: Apache-2.0
#include "server/shortfin/generate_endpoint.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "server/event_stream.h"
#include "server/openai/error.h"
#include "server/shortfin/error.h"
#include "server/shortfin/generate_request.h"
#include "server/start_generation.h"

namespace tessera::server::shortfin {
namespace {

net::Response ErrorResponse(const Status& status) {
  return shortfin::ErrorResponse(openai::FromStatus(status));
}

class Responder : public GenerationListener {
 public:
  /// `stream` is null where the answer is one body.
  Responder(GenerateRequest request, Reply reply, std::shared_ptr<EventStream> stream)
      : request_(std::move(request)),
        reply_(std::move(reply)),
        stream_(std::move(stream)),
        has_warnings_(!request_.warnings.empty()),
        collected_(request_.prompts.size()) {
    for (size_t i = 0; i < request_.prompts.size(); ++i)
      prompt_of_.insert(prompt_of_.end(), static_cast<size_t>(request_.prompts[i].num_beams), i);
    for (const size_t prompt : prompt_of_) {
      answer_of_.push_back(collected_[prompt].size());
      collected_[prompt].emplace_back();
    }
  }

  void OnDelta(size_t choice, engine::OutputDelta delta) override {
    if (stream_ != nullptr) {
      if (!delta.text.empty()) SendText(choice, delta.text);
      return;
    }
    Collected& collected = collected_[prompt_of_[choice]][answer_of_[choice]];
    collected.text += delta.text;
    for (const engine::PlacedToken& token : delta.tokens) collected.ids.emplace_back(token.id);
  }

  void OnChoiceEnd(size_t, engine::FinishReason) override {}

  void OnDone(const GenerationTotals&) override {
    if (stream_ != nullptr) {
      if (has_warnings_) SendText(0, "");  // Of an answer without text.
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
  /// The first event has the warnings.
  void SendText(size_t choice, std::string_view text) {
    json::Object event{{"rid", request_.prompts[choice].rid}, {"index", choice}, {"text", text}};
    if (std::exchange(has_warnings_, false))
      event["warnings"] = openai::WarningsBody(request_.warnings);
    stream_->SendData(json::Serialize(event));
  }

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
      for (const Collected& answer : collected_[i])
        texts.push_back(json::Object{{"text", answer.text}});
      row["responses"] = std::move(texts);
      rows.push_back(std::move(row));
    }
    json::Object body;
    body["responses"] = std::move(rows);
    if (!request_.warnings.empty()) body["warnings"] = openai::WarningsBody(request_.warnings);
    return body;
  }

  json::Value IdsBody() const {
    if (!request_.is_batch) return IdsOf(collected_.front());
    json::Array rows;
    for (const std::vector<Collected>& answers : collected_) rows.push_back(IdsOf(answers));
    return rows;
  }

  /// Of one prompt: a list of ids, or with beams a list of such lists.
  static json::Array IdsOf(const std::vector<Collected>& answers) {
    if (answers.size() == 1) return answers.front().ids;
    json::Array lists;
    for (const Collected& answer : answers) lists.push_back(answer.ids);
    return lists;
  }

  const GenerateRequest request_;
  const Reply reply_;
  const std::shared_ptr<EventStream> stream_;
  bool has_warnings_;                              // To be sent yet, in a stream.
  std::vector<std::vector<Collected>> collected_;  // [prompts][answers]
  std::vector<size_t> prompt_of_, answer_of_;      // [choices]
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
  if (prompt.num_beams > 1) request.beams.emplace().width = prompt.num_beams;
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
    for (int beam = 0; beam < parsed->prompts[i].num_beams; ++beam) {
      choices.push_back(MakeChoice(context, parsed->prompts[i], i, arrival));
      choices.back().is_next_beam = beam > 0;
    }
    ids.push_back(parsed->prompts[i].rid);
  }
  auto stream = parsed->stream ? std::make_shared<EventStream>(reply, context.clock) : nullptr;
  auto responder = std::make_unique<Responder>(*std::move(parsed), reply, stream);
  if (const auto error = StartGeneration(context, reply, std::move(ids), std::move(choices),
                                         std::move(responder), stream))
    (void)reply.Send(shortfin::ErrorResponse(*error));
}

}  // namespace tessera::server::shortfin
