// SPDX-License-Identifier: Apache-2.0
//
// Resume: a client whose stream broke goes on behind the last event it has. Only streams that asked
// for it (stream_options.resumable) can be gone on with, by the key that asked; the limits are in
// limits.h.
#pragma once

#include "net/http.h"
#include "server/context.h"
#include "server/reply.h"

namespace tessera::server {

/// GET /v1/requests/{id}/events: from the beginning, or behind the event of the header
/// Last-Event-ID ("ID:17", or "17").
void HandleResume(const Context& context, const net::Request& request, const Reply& reply);

/// The same where a client repeats its request with Last-Event-ID "ID:17". False, and nothing done,
/// without that header.
bool ResumeIfAsked(const Context& context, const net::Request& request, const Reply& reply);

}  // namespace tessera::server
