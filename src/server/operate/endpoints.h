// SPDX-License-Identifier: Apache-2.0
//
// What operators call: /admin. Handlers for net/router.h; who may call is decided before
// (access/access_control.h, scope admin).
#pragma once

#include "net/http.h"
#include "server/context.h"
#include "server/reply.h"

namespace tessera::server::operate {

/// What the server does now and has done: engine, queue, KV pages, connections, each key.
net::Response HandleStats(const Context& context);

/// {"confirm", "timeout"?}: takes no more requests and answers with a report when the running ones
/// have ended. The process stays, /readyz says 503.
void HandleDrain(const Context& context, const net::Request& request, const Reply& reply);

/// What SIGHUP does. 400 failed_precondition with the reason when a file is bad; then nothing has
/// changed.
net::Response HandleReload(const Context& context);

}  // namespace tessera::server::operate
