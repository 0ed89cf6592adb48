// SPDX-License-Identifier: Apache-2.0
//
// The Responses API, stateless: POST /v1/responses. The call parses on the caller's thread, submits
// and returns; the answer follows on the task thread.
#pragma once

#include "net/http.h"
#include "server/context.h"
#include "server/reply.h"

namespace tessera::server::responses {

void HandleResponses(const Context& context, const net::Request& request, const Reply& reply);

}  // namespace tessera::server::responses
