// SPDX-License-Identifier: Apache-2.0
//
// Errors as clients of the shortfin server know them: {"error": message, "code": word}.
#pragma once

#include "net/http.h"
#include "server/openai/error.h"

namespace tessera::server::shortfin {

/// Status and headers are those of openai::ErrorResponse.
net::Response ErrorResponse(const openai::ApiError& error);

}  // namespace tessera::server::shortfin
