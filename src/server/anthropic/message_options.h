// SPDX-License-Identifier: Apache-2.0
//
// Tools, thinking and output_config of the Messages API -> the words of /v1/chat/completions. Pure
// functions of body and model.
#pragma once

#include <vector>

#include "base/json.h"
#include "server/chat/tools.h"
#include "server/openai/error.h"
#include "server/openai/schema.h"
#include "server/served_model.h"

namespace tessera::server::anthropic {

/// `body` has passed the table of fields, here and below. Appends warnings.
openai::ApiResult<chat::ToolFields> ReadMessageTools(const json::Object& body,
                                                     std::vector<openai::Warning>* warnings);

/// Sets what `thinking` means in `chat`. Errors name the field as this API does.
chat::Problem ReadThinking(const json::Object& body, const ServedModel& model, json::Object* chat);
/// Thoughts are in the answer, but their text is not wanted.
bool OmitsThinking(const json::Object& body);

/// Sets what output_config (or the older output_format) means in `chat`. Appends warnings.
chat::Problem ReadOutputConfig(const json::Object& body, json::Object* chat,
                               std::vector<openai::Warning>* warnings);

}  // namespace tessera::server::anthropic
