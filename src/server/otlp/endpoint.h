// SPDX-License-Identifier: Apache-2.0
//
// Endpoint: where a collector takes traces, from the URL that an operator gives. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tessera::server::otlp {

struct Endpoint {
  std::string host;
  uint16_t port = 80;
  std::string target;  // "/v1/traces", behind what path the URL has.
  std::string name;    // "http://host:port/v1/traces", for messages.
};

/// "http://localhost:4318", with or without a path, to which /v1/traces is added unless it ends so.
/// kInvalidArgument for anything else: other schemes (TLS is a local collector's business), user
/// names, queries.
Result<Endpoint> ParseEndpoint(std::string_view url);

}  // namespace tessera::server::otlp
