// SPDX-License-Identifier: Apache-2.0
//
// The Messages API: POST /v1/messages and POST /v1/messages/count_tokens. Calls parse on the
// caller's thread, submit and return; answers follow on the task thread.
#pragma once

#include "net/http.h"
#include "server/context.h"
#include "server/reply.h"

namespace tessera::server::anthropic {

void HandleMessages(const Context& context, const net::Request& request, const Reply& reply);
/// {"input_tokens"}.
void HandleCountTokens(const Context& context, const net::Request& request, const Reply& reply);

}  // namespace tessera::server::anthropic
