// SPDX-License-Identifier: Apache-2.0
//
// Turns: `messages` and `system` of the Messages API -> messages as chat templates know them. Pure
// functions.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "server/openai/error.h"
#include "server/openai/schema.h"

namespace tessera::server::anthropic {

struct Turns {
  json::Array messages;  // {"role", "content"}, content a string.
  std::string prefill;   // Beginning of the answer: the last turn, if it was the assistant's.
};

/// `body` has passed the table of fields. Appends warnings.
openai::ApiResult<Turns> ReadTurns(const json::Object& body,
                                   std::vector<openai::Warning>* warnings);

}  // namespace tessera::server::anthropic
