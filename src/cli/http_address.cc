// SPDX-License-Identifier: Apache-2.0
#include "cli/http_address.h"

#include <fmt/format.h>

#include <string>

#include "hub/http.h"

namespace tessera::cli {

Status CheckHttpAddress(std::string_view source, std::string_view address) {
  const bool is_http = address.starts_with("https://") || address.starts_with("http://");
  if (!is_http || hub::OriginOf(address).empty())
    return InvalidArgument(
        fmt::format("{}=\"{:.80}\": expected an address that begins with https:// or http://",
                    source, address));
  const size_t host = address.find("://") + 3;
  if (address.substr(host, address.find('/', host) - host).find('@') != std::string_view::npos)
    return InvalidArgument(
        fmt::format("{} has a password in it, which messages would show: leave it out", source));
  return {};
}

bool IsLoopbackAddress(std::string_view address) {
  const std::string origin = hub::OriginOf(address);
  const size_t host = origin.find("://");
  if (host == std::string::npos) return false;
  const std::string_view name = std::string_view(origin).substr(host + 3);
  return name.starts_with("127.") || name.starts_with("[::1]:") || name.starts_with("localhost:");
}

}  // namespace tessera::cli
