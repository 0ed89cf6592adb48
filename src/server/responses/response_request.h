// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/responses: body -> values. Stateless: what would need a store is refused by name. A pure
// function of body and model.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "server/openai/generation_fields.h"
#include "text/chat_prompt.h"

namespace tessera::server::responses {

struct ResponseRequest {
  openai::GenerationFields fields;
  std::vector<engine::TokenId> prompt;
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
