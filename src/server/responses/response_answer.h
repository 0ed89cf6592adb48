// SPDX-License-Identifier: Apache-2.0
//
// ResponseAnswer: the bodies of a Responses answer: the whole object, and the events of a stream,
// numbered from 0: response.created, response.in_progress; for each item of the output
// response.output_item.added, its pieces, response.output_item.done; then response.completed,
// response.incomplete or response.failed. Pieces of a message and of thoughts are those of its one
// content part (response.content_part.added, response.output_text.delta or
// response.reasoning_text.delta, their done, response.content_part.done), of a call
// response.function_call_arguments.delta and done. No engine, no HTTP.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/chat/event_answer.h"

namespace tessera::server::responses {

struct ResponseHead {
  std::string id;  // "resp_...".
  int64_t created = 0;
  std::string model;
  json::Object echo;  // Members of the request that the answer repeats.
  int64_t prompt_tokens = 0;
  std::vector<openai::Warning> warnings;
};

class ResponseAnswer : public chat::EventAnswer {
 public:
  ResponseAnswer(ResponseHead head, const openai::MessageFields& fields)
      : EventAnswer(chat::AnswerParts(fields, "call_")), head_(std::move(head)) {}

  void Begin(Events* events) override;
  void Open(size_t part, Events* events) override;
  void Extend(size_t part, std::string_view text, Events* events) override;
  void Close(size_t part, bool is_cut, Events* events) override;
  void End(const chat::Ending& ending, Events* events) override;
  void Fail(const openai::ApiError& error, Events* events) override;

  json::Object Whole(const chat::Ending& ending) override;
  net::Response Refusal(const openai::ApiError& error) const override;
  std::string_view param() const override { return "output"; }

 private:
  /// With an empty output, no usage and the status.
  json::Object Body(std::string_view status) const;
  json::Object Usage(const chat::Ending& ending) const;
  /// Part number `part` as an item of the output, holding `text` of it, or nothing if there is
  /// none.
  json::Object Item(size_t part, std::string_view status, const std::string* text);
  const std::string& ItemId(size_t part);
  net::SseEvent Event(std::string_view type, json::Object members);
  /// About the one content of a part.
  net::SseEvent ContentEvent(std::string_view type, size_t part, json::Object members);

  const ResponseHead head_;
  std::vector<std::string> item_ids_;  // [parts]
  int64_t sequence_number_ = 0;
};

}  // namespace tessera::server::responses
