// SPDX-License-Identifier: Apache-2.0
//
// ClientRequest: a request as both clients (client.h, upstream.h) take and send it. Plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "net/http.h"

namespace tessera::net {

struct ClientRequest {
  std::string method = "GET";
  std::string target = "/";
  Headers headers{};  // Host and Content-Length are added.
  std::string body{};
};

/// kInvalidArgument for what would make two requests of one.
Status CheckRequest(const ClientRequest& request);
/// HTTP/1.1 bytes. Requires that CheckRequest found nothing.
std::string SerializeRequest(const ClientRequest& request, std::string_view host, uint16_t port);

}  // namespace tessera::net
