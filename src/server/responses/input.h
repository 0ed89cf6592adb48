// SPDX-License-Identifier: Apache-2.0
//
// Input: `input` and `instructions` of the Responses API -> messages as chat templates know them:
// texts, thoughts, calls of functions and their results. Pure functions.
#pragma once

#include <vector>

#include "base/json.h"
#include "server/openai/error.h"
#include "server/openai/schema.h"

namespace tessera::server::responses {

/// As openai::NormalizeMessages leaves them. `body` has passed the table of fields. Appends
/// warnings.
openai::ApiResult<json::Array> ReadInput(const json::Object& body,
                                         std::vector<openai::Warning>* warnings);

}  // namespace tessera::server::responses
