// SPDX-License-Identifier: Apache-2.0
#include "server/otlp/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace tessera::server::otlp {
namespace {

constexpr std::string_view kScheme = "http://";
constexpr std::string_view kTraces = "/v1/traces";

std::optional<uint16_t> PortOf(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

Status Bad(std::string_view url, std::string_view why) {
  return InvalidArgument(fmt::format(
      "the collector's address is \"{:.200}\": {}; expected something like http://localhost:4318",
      url, why));
}

}  // namespace

Result<Endpoint> ParseEndpoint(std::string_view url) {
  if (url.starts_with("https://"))
    return Fail(Bad(url, "TLS is not built in; let a collector on this machine pass traces on"));
  if (!url.starts_with(kScheme)) return Fail(Bad(url, "it does not begin with http://"));
  const bool is_plain = std::ranges::all_of(url, [](char c) {
    return c > ' ' && c < 0x7F && c != '?' && c != '#' && c != '@' && c != '"' && c != '\\';
  });
  if (!is_plain) return Fail(Bad(url, "it has a user, a query, a space or a control character"));
  std::string_view rest = url.substr(kScheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view path = rest.substr(slash);
  std::string_view host = rest.substr(0, slash);
  Endpoint endpoint;
  const size_t bracket = host.starts_with('[') ? host.find(']') : 0;
  if (bracket == host.npos) return Fail(Bad(url, "a bracket is not closed"));
  if (const size_t colon = host.find(':', bracket); colon != host.npos) {
    const auto port = PortOf(host.substr(colon + 1));
    if (!port.has_value()) return Fail(Bad(url, "its port is no number from 1 to 65535"));
    endpoint.port = *port;
    host = host.substr(0, colon);
  }
  endpoint.host = bracket > 0 ? host.substr(1, host.size() - 2) : host;
  if (endpoint.host.empty() || (bracket > 0 && !host.ends_with(']')))
    return Fail(Bad(url, "it names no host"));
  while (path.ends_with('/')) path.remove_suffix(1);
  endpoint.target = path;
  if (!endpoint.target.ends_with(kTraces)) endpoint.target += kTraces;
  endpoint.name = fmt::format("http://{}:{}{}", host, endpoint.port, endpoint.target);
  return endpoint;
}

}  // namespace tessera::server::otlp
