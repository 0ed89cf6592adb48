// SPDX-License-Identifier: Apache-2.0
//
// EventAnswer: an answer in a dialect whose streams are named events about parts: each part is
// opened, goes on, and is closed before the next. A dialect says how these events look and what the
// whole answer is; the responder does the rest, so that a stream is the whole answer cut in pieces.
// Lives on the task thread.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "net/sse.h"
#include "server/chat/answer_parts.h"
#include "server/event_stream.h"
#include "server/generation.h"
#include "server/openai/error.h"
#include "server/reply.h"
#include "server/warning_counters.h"

namespace tessera::server::chat {

/// How the answer ended.
struct Ending {
  engine::FinishReason reason = engine::FinishReason::kStop;
  GenerationTotals totals;
  std::vector<openai::Warning> warnings;  // That came up with the answer.
};

class EventAnswer {
 public:
  using Events = std::vector<net::SseEvent>;

  explicit EventAnswer(AnswerParts parts) : parts_(std::move(parts)) {}
  virtual ~EventAnswer() = default;

  // A stream: Begin once, then for each part Open, any number of Extend, Close; End, or Fail at any
  // time behind Begin.
  virtual void Begin(Events* events) = 0;
  virtual void Open(size_t part, Events* events) = 0;
  virtual void Extend(size_t part, std::string_view text, Events* events) = 0;
  /// `is_cut`: the answer ended within it.
  virtual void Close(size_t part, bool is_cut, Events* events) = 0;
  virtual void End(const Ending& ending, Events* events) = 0;
  virtual void Fail(const openai::ApiError& error, Events* events) = 0;

  virtual json::Object Whole(const Ending& ending) = 0;
  /// An error instead of an answer.
  virtual net::Response Refusal(const openai::ApiError& error) const = 0;
  /// What an answer's warnings name as their place in it.
  virtual std::string_view param() const = 0;

  const AnswerParts& parts() const { return parts_; }
  /// For the responder.
  AnswerParts& mutable_parts() { return parts_; }

 private:
  AnswerParts parts_;
};

/// `stream` is null where the answer is one body. `counters` are of warnings; they outlive it.
std::unique_ptr<GenerationListener> MakeEventResponder(std::unique_ptr<EventAnswer> answer,
                                                       Reply reply,
                                                       std::shared_ptr<EventStream> stream,
                                                       WarningCounters* counters);

}  // namespace tessera::server::chat
