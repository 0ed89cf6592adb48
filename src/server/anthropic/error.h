// SPDX-License-Identifier: Apache-2.0
//
// Errors as the Messages API shapes them: {"type": "error", "error": {"type", "message"},
// "request_id"}. The HTTP status is that of the other dialects. Pure functions.
#pragma once

#include <string_view>

#include "base/json.h"
#include "net/http.h"
#include "server/openai/error.h"

namespace tessera::server::anthropic {

/// `request_id` is the answer's X-Request-Id.
json::Object ErrorBody(const openai::ApiError& error, std::string_view request_id);
net::Response ErrorResponse(const openai::ApiError& error, std::string_view request_id);

}  // namespace tessera::server::anthropic
