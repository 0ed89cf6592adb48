// SPDX-License-Identifier: Apache-2.0
//
// Readiness: GET /readyz says 200 only on evidence. A step that succeeded within kReadyStepAge is
// evidence, and so is one that runs and is not stuck; otherwise one token is generated, and the
// answer waits for it. So an idle server computes at most one token every kReadyStepAge for probes.
#pragma once

#include "net/http.h"
#include "server/context.h"
#include "server/reply.h"

namespace tessera::server {

/// 200 with an empty body, or 503 and the reason.
void HandleReady(const Context& context, const net::Request& request, const Reply& reply);

/// What can be said without a step: not ok while draining or when a step has run for too long.
Status CheckAlive(const Context& context);

}  // namespace tessera::server
