// SPDX-License-Identifier: Apache-2.0
//
// What a chat request says of functions: tools, tool_choice, parallel_tool_calls, and the older
// names functions and function_call. Pure functions of the body; any thread.
#pragma once

#include <vector>

#include "base/json.h"
#include "server/chat/tools.h"
#include "server/openai/error.h"
#include "server/openai/schema.h"

namespace tessera::server::openai {

/// `body` has passed CheckFields. Appends warnings.
ApiResult<chat::ToolFields> ReadToolFields(const json::Object& body,
                                           std::vector<Warning>* warnings);

/// A tool_choice as the hosted APIs write it: none, auto, required, a function by name, or
/// allowed_tools. What says more than its type stands in a member of the type's name, if `words`
/// has a wrapper, else beside the type.
chat::Problem ReadToolChoice(const json::Value& choice, const chat::ToolWords& words,
                             chat::ToolFields* fields);

}  // namespace tessera::server::openai
