// SPDX-License-Identifier: Apache-2.0
//
// MessageAnswer: the bodies of a Messages answer: the whole message, and the events of a stream, in
// the order in which clients know them: message_start, then for each block content_block_start,
// content_block_delta (any number) and content_block_stop, then message_delta, message_stop. A ping
// follows the first block's start. No engine, no HTTP.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/chat/event_answer.h"

namespace tessera::server::anthropic {

struct MessageHead {
  std::string id;  // "msg_...".
  std::string model;
  std::string request_id;  // Of errors.
  int64_t prompt_tokens = 0;
  bool omits_thinking = false;  // Blocks of thoughts come without their text.
  std::vector<openai::Warning> warnings;
};

class MessageAnswer : public chat::EventAnswer {
 public:
  MessageAnswer(MessageHead head, const openai::MessageFields& fields)
      : EventAnswer(chat::AnswerParts(fields, "toolu_")), head_(std::move(head)) {}

  /// The prompt is counted whole: what the cache had is known at the end.
  void Begin(Events* events) override;
  void Open(size_t part, Events* events) override;
  void Extend(size_t part, std::string_view text, Events* events) override;
  void Close(size_t part, bool is_cut, Events* events) override;
  void End(const chat::Ending& ending, Events* events) override;
  void Fail(const openai::ApiError& error, Events* events) override;

  json::Object Whole(const chat::Ending& ending) override;
  net::Response Refusal(const openai::ApiError& error) const override;
  std::string_view param() const override { return "content"; }

 private:
  using Part = chat::AnswerParts::Part;
  /// Without what comes in deltas.
  json::Object EmptyBlock(const Part& part) const;
  json::Object Block(const Part& part, std::vector<openai::Warning>* warnings) const;
  json::Object Stop(const chat::Ending& ending) const;
  json::Object Usage(const chat::Ending& ending) const;
  std::vector<openai::Warning> Warnings(const chat::Ending& ending) const;

  const MessageHead head_;
};

}  // namespace tessera::server::anthropic
