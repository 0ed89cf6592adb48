// SPDX-License-Identifier: Apache-2.0
//
// Values of a request's query, checked. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gateway/spec/read_spec.h"
#include "net/http.h"

namespace tessera::gateway {

/// 422 about one of them.
ApiError QueryError(std::string_view name, std::string msg);

/// A whole number within [low, high].
ApiResult<int64_t> QueryNumber(const net::Request& request, std::string_view name, int64_t low,
                               int64_t high, int64_t fallback);

}  // namespace tessera::gateway
