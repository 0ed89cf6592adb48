// SPDX-License-Identifier: Apache-2.0
//
// A form of the answer (response_format and its like) where thoughts are a part of their own: they
// come first, in no form, and what is behind them has it. Shared by the dialects that think.
#pragma once

#include "base/json.h"
#include "server/chat/tools.h"
#include "server/openai/generation_fields.h"

namespace tessera::server::openai {

/// Puts thoughts in front of the form in `fields->grammar`, which came from `body`, when the answer
/// may have any. With tools, ToolConstrainer does that. Requires that SetMessageFormat came before.
ApiResult<void> AllowThoughts(const json::Object& body, const chat::ToolFields& tools,
                              const ServedModel& model, GenerationFields* fields);

}  // namespace tessera::server::openai
