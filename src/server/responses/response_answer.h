// SPDX-License-Identifier: Apache-2.0
//
// The bodies of a Responses answer: the whole object, and the events of a stream, numbered from 0:
// response.created, response.in_progress, response.output_item.added,
// response.content_part.added, response.output_text.delta (any number), response.output_text.done,
// response.content_part.done, response.output_item.done, and response.completed,
// response.incomplete or response.failed. No engine, no HTTP. One owner at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/request.h"
#include "net/sse.h"
#include "server/openai/error.h"
#include "server/openai/schema.h"

namespace tessera::server::responses {

struct ResponseHead {
  std::string id;       // "resp_...".
  std::string item_id;  // "msg_...": of the one message in its output.
  int64_t created = 0;
  std::string model;
  json::Object echo;  // Members of the request that the answer repeats.
  int64_t prompt_tokens = 0;
  std::vector<openai::Warning> warnings;
};

/// How the answer ended.
struct ResponseEnd {
  engine::FinishReason reason = engine::FinishReason::kStop;
  int64_t output_tokens = 0;
  int64_t cached_tokens = 0;  // Of the prompt.
};

class ResponseAnswer {
 public:
  explicit ResponseAnswer(ResponseHead head) : head_(std::move(head)) {}

  json::Object Whole(std::string_view text, const ResponseEnd& end) const;

  // A stream, in this order: Begin, any number of Delta, then End or Fail.
  std::vector<net::SseEvent> Begin();
  net::SseEvent Delta(std::string_view text);
  std::vector<net::SseEvent> End(std::string_view text, const ResponseEnd& end);
  net::SseEvent Fail(const openai::ApiError& error);

 private:
  /// With an empty output, no usage and the status.
  json::Object Body(std::string_view status) const;
  json::Object Item(std::string_view status, json::Array content) const;
  net::SseEvent Event(std::string_view type, json::Object members);

  const ResponseHead head_;
  int64_t sequence_number_ = 0;
};

}  // namespace tessera::server::responses
