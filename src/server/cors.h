// SPDX-License-Identifier: Apache-2.0
//
// What browsers of other sites may do (CORS): nothing, unless an origin is named. Pure functions.
#pragma once

#include <string_view>

#include "net/http.h"
#include "server/context.h"

namespace tessera::server {

void AddCorsHeaders(const ApiOptions& options, net::Headers* headers);
/// OPTIONS on a known path, preflights included. `allow` lists its methods.
net::Response AnswerOptions(const ApiOptions& options, const net::Request& request,
                            std::string_view allow);

}  // namespace tessera::server
