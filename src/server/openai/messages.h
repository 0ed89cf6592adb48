// SPDX-License-Identifier: Apache-2.0
//
// `messages` of a chat, checked and brought to the form that chat templates expect: roles that they
// know, content a string, calls of functions in `tool_calls` with arguments that are objects. Each
// change that could matter to the client is a warning.
#pragma once

#include <vector>

#include "base/json.h"
#include "server/openai/error.h"
#include "server/openai/schema.h"

namespace tessera::server::openai {

/// Checks `messages` and normalises them in place.
ApiResult<std::vector<Warning>> NormalizeMessages(json::Value* messages);

}  // namespace tessera::server::openai
