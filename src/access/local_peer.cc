// SPDX-License-Identifier: Apache-2.0
#include "access/local_peer.h"

#include <algorithm>

namespace tessera::access {
namespace {

/// "a:80" -> "a", "[::1]:80" -> "::1", "a" -> "a".
std::string_view HostOf(std::string_view authority) {
  if (authority.starts_with('[')) {
    const size_t end = authority.find(']');
    return end == authority.npos ? std::string_view() : authority.substr(1, end - 1);
  }
  return authority.substr(0, authority.find(':'));
}

/// Four numbers of which the first is 127: a name like 127.example.org is none.
bool IsLoopbackV4(std::string_view host) {
  const auto is_part = [](char c) { return c == '.' || (c >= '0' && c <= '9'); };
  return host.starts_with("127.") && std::ranges::all_of(host, is_part) &&
         std::ranges::count(host, '.') == 3;
}

bool IsLoopbackAddress(std::string_view host) {
  if (host == "::1") return true;
  constexpr std::string_view kMapped = "::ffff:";
  if (host.starts_with(kMapped)) host.remove_prefix(kMapped.size());
  return IsLoopbackV4(host);
}

}  // namespace

bool IsLoopbackPeer(std::string_view peer) {
  return IsLoopbackAddress(HostOf(peer));
}

bool IsLocalOperator(const net::Request& request) {
  if (!IsLoopbackPeer(request.peer)) return false;
  for (const std::string_view name :
       {"forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via", "origin"})
    if (request.headers.Has(name)) return false;
  const std::string_view host = HostOf(request.headers.Find("host").value_or("localhost"));
  return host == "localhost" || IsLoopbackAddress(host);
}

}  // namespace tessera::access
