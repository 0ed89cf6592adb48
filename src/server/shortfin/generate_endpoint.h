// SPDX-License-Identifier: Apache-2.0
//
// /generate over the same engine as the OpenAI routes. Answers:
//   {"responses": [{"prompt": TEXT or null, "responses": [{"text": TEXT}]}, ...]}   by position
//   [ids] or [[ids], ...]                                     with return_input_ids
//   events {"rid", "index", "text": delta}, then [DONE]       with stream
//   {"error": TEXT, "code": "INVALID_REQUEST_ARGS"}           400
#pragma once

#include "net/http.h"
#include "server/context.h"
#include "server/reply.h"

namespace tessera::server::shortfin {

void HandleGenerate(const Context& context, const net::Request& request, const Reply& reply);

}  // namespace tessera::server::shortfin
