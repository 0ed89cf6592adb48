// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/responses: body -> values. Items (input.h), tools, reasoning and the text's form
// (response_options.h) are brought into the words of /v1/chat/completions, whose readers do the
// rest. Stateless: what would need a store is refused by name. A pure function of body and model.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "server/openai/chat_request.h"

namespace tessera::server::responses {

struct ResponseRequest {
  openai::ChatRequest chat;
  json::Object echo;  // Members of the request that the answer repeats.
};

/// Parses, checks, renders, tokenises. Includes the check of prompt and answer against
/// `max_model_len`.
openai::ApiResult<ResponseRequest> ReadResponseRequest(std::string_view body,
                                                       const ServedModel& model,
                                                       const text::SpecialTokens& specials,
                                                       int64_t now_unix_seconds,
                                                       int64_t max_model_len);

}  // namespace tessera::server::responses
