// SPDX-License-Identifier: Apache-2.0
//
// The routes of llm-engine's LLM endpoints: create, list, get, update, delete, and what a user
// needs to look into one: workers, events, logs, restart.
#pragma once

#include "gateway/api/context.h"
#include "net/router.h"

namespace tessera::gateway {

/// `context` must outlive the router's handlers.
void AddEndpointRoutes(const Context& context, net::Router* router);

}  // namespace tessera::gateway
