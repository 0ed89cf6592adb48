// SPDX-License-Identifier: Apache-2.0
//
// Who may call: the API key, and what browsers of other sites may do (CORS). Pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "net/http.h"
#include "server/context.h"
#include "server/openai/error.h"

namespace tessera::server {

/// 401 unless "Authorization: Bearer KEY" or "X-Api-Key: KEY" holds the key; nothing when none is
/// asked for.
std::optional<openai::ApiError> CheckKey(const ApiOptions& options, const net::Request& request);

void AddCorsHeaders(const ApiOptions& options, net::Headers* headers);
/// OPTIONS on a known path, preflights included. `allow` lists its methods.
net::Response AnswerOptions(const ApiOptions& options, const net::Request& request,
                            std::string_view allow);

}  // namespace tessera::server
