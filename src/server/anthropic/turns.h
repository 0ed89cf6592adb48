// SPDX-License-Identifier: Apache-2.0
//
// Turns: `messages` and `system` of the Messages API -> messages as chat templates know them.
// Thoughts and tool_use blocks become part of the assistant's message, tool_result blocks messages
// of their own. Pure functions.
#pragma once

#include <vector>

#include "base/json.h"
#include "server/openai/error.h"
#include "server/openai/schema.h"

namespace tessera::server::anthropic {

struct Turns {
  json::Array messages;         // As openai::NormalizeMessages leaves them.
  bool continues_last = false;  // The last is the assistant's: the answer goes on within it.
};

/// `body` has passed the table of fields. Appends warnings.
openai::ApiResult<Turns> ReadTurns(const json::Object& body,
                                   std::vector<openai::Warning>* warnings);

}  // namespace tessera::server::anthropic
