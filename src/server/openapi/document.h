// SPDX-License-Identifier: Apache-2.0
//
// The API's description, OpenAPI 3.1: paths from operations.h, request bodies from the tables of
// fields that also validate, answers from components.h. Pure functions.
#pragma once

#include "base/json.h"
#include "net/http.h"

namespace tessera::server::openapi {

json::Object MakeDocument();
/// GET /openapi.json.
net::Response HandleOpenApi();

}  // namespace tessera::server::openapi
