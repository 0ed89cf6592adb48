// SPDX-License-Identifier: Apache-2.0
//
// How the answer of a chat request is read: where calls of functions are looked for, and thoughts.
// Shared by the dialects whose answers have them.
#pragma once

#include <string_view>

#include "base/json.h"
#include "server/chat/tools.h"
#include "server/openai/generation_fields.h"

namespace tessera::server::openai {

/// Sets `fields->message` from tools and the fields separate_reasoning and include_reasoning of
/// `body`. `prompt` is its text, as the template wrote it.
ApiResult<void> SetMessageFormat(const json::Object& body, const chat::ToolFields& tools,
                                 const ServedModel& model, std::string_view prompt,
                                 GenerationFields* fields);

}  // namespace tessera::server::openai
