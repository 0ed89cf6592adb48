// SPDX-License-Identifier: Apache-2.0
//
// The bodies of a Messages answer: the whole message, and the events of a stream, in the order in
// which clients know them: message_start, content_block_start, ping, content_block_delta (any
// number), content_block_stop, message_delta, message_stop. Pure functions of the head and what
// happened; no engine, no HTTP.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/request.h"
#include "net/sse.h"
#include "server/openai/schema.h"

namespace tessera::server::anthropic {

struct MessageHead {
  std::string id;  // "msg_...".
  std::string model;
  int64_t prompt_tokens = 0;
  std::vector<openai::Warning> warnings;
};

/// How the answer ended.
struct MessageEnd {
  engine::FinishReason reason = engine::FinishReason::kStop;
  std::string stop_sequence;  // The one found; empty: none.
  int64_t output_tokens = 0;
  int64_t cached_tokens = 0;  // Of the prompt.
};

json::Object WholeMessage(const MessageHead& head, std::string_view text, const MessageEnd& end);

/// The first three events. The prompt is counted whole: what the cache had is known at the end.
std::vector<net::SseEvent> BeginEvents(const MessageHead& head);
net::SseEvent TextEvent(std::string_view text);
/// The last three, with warnings in message_delta.
std::vector<net::SseEvent> EndEvents(const MessageHead& head, const MessageEnd& end);

}  // namespace tessera::server::anthropic
