// SPDX-License-Identifier: Apache-2.0
//
// Keeps an answer to the form that functions ask for: what begins as a call ends as one, of a
// function that may be called, with arguments that obey its schema; and where a call is required
// there is nothing else. Compiling takes up to a second for what was not asked before: on the
// threads that parse requests.
#pragma once

#include "base/json.h"
#include "server/chat/tools.h"
#include "server/limits.h"
#include "server/openai/generation_fields.h"

namespace tessera::server::openai {

/// Sets `fields->grammar`, which may hold the form of the answer's text (response_format and its
/// like, from `body`), and how calls are given out. Requires that SetMessageFormat came before.
/// 400 for a schema that is wrong, or that must be enforced and cannot be; in a free choice what
/// cannot be enforced is a warning, unless the function is `strict`. So is what could not be
/// compiled within `schemas_time`, which is for all of them together.
ApiResult<void> ConstrainTools(const json::Object& body, const chat::ToolFields& tools,
                               const ServedModel& model, GenerationFields* fields,
                               Duration schemas_time = kSchemasTimeMax);

}  // namespace tessera::server::openai
