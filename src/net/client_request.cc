// SPDX-License-Identifier: Apache-2.0
#include "net/client_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/ascii.h"

namespace tessera::net {

Status CheckRequest(const ClientRequest& request) {
  if (!IsToken(request.method)) return InvalidArgument("the method is not a token");
  const bool is_plain = std::ranges::all_of(
      request.target, [](char c) { return IsFieldChar(c) && c != ' ' && c != '\t'; });
  if (request.target.empty() || !is_plain)
    return InvalidArgument("the target is empty or holds a space or control character");
  return request.headers.Check();
}

std::string SerializeRequest(const ClientRequest& request, std::string_view host, uint16_t port) {
  std::string out = fmt::format("{} {} HTTP/1.1\r\n", request.method, request.target);
  if (!request.headers.Has("Host"))
    out += host.contains(':') ? fmt::format("Host: [{}]:{}\r\n", host, port)
                              : fmt::format("Host: {}:{}\r\n", host, port);
  for (const auto& [name, value] : request.headers)
    out.append(name).append(": ").append(value).append("\r\n");
  const bool has_body = !request.body.empty() || request.method == "POST" ||
                        request.method == "PUT" || request.method == "PATCH";
  if (has_body) out += fmt::format("Content-Length: {}\r\n", request.body.size());
  out += "\r\n";
  out += request.body;
  return out;
}

}  // namespace tessera::net
