// SPDX-License-Identifier: Apache-2.0
//
// The gateway's API described, OpenAPI 3.1: paths from operations.h, request bodies from the tables
// of fields that also validate, answers from components.h. Pure functions.
#pragma once

#include "base/json.h"
#include "net/router.h"

namespace tessera::gateway::openapi {

json::Object MakeDocument();

/// GET /openapi.json, and GET /docs: routes and fields as a page without scripts. Open to all.
void AddDocumentRoutes(net::Router* router);

}  // namespace tessera::gateway::openapi
