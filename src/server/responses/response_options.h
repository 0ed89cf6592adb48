// SPDX-License-Identifier: Apache-2.0
//
// Tools, reasoning and text of the Responses API -> the words of /v1/chat/completions. Pure
// functions of body and model. `body` has passed the table of fields.
#pragma once

#include <vector>

#include "base/json.h"
#include "server/chat/tools.h"
#include "server/openai/error.h"
#include "server/openai/schema.h"
#include "server/served_model.h"

namespace tessera::server::responses {

/// Appends warnings.
openai::ApiResult<chat::ToolFields> ReadResponseTools(const json::Object& body,
                                                      std::vector<openai::Warning>* warnings);
/// Sets what `reasoning` means in `chat`. Appends warnings.
chat::Problem ReadReasoning(const json::Object& body, const ServedModel& model, json::Object* chat,
                            std::vector<openai::Warning>* warnings);
/// Sets what text.format means in `chat`. Appends warnings.
chat::Problem ReadTextFormat(const json::Object& body, json::Object* chat,
                             std::vector<openai::Warning>* warnings);
/// truncation and include: 400 unless they ask for what there is.
chat::Problem CheckFixed(const json::Object& body);

/// Members of the request that the answer repeats, but for sampling values.
json::Object EchoOf(const json::Object& body, const chat::ToolFields& tools);

}  // namespace tessera::server::responses
