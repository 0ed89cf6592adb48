// SPDX-License-Identifier: Apache-2.0
//
// The printed form of an Asio endpoint. Includes Boost: for the two files that use sockets.
#pragma once

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <string>

namespace tessera::net {

/// "127.0.0.1:80", "[::1]:80".
inline std::string EndpointName(const boost::asio::ip::tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", address, endpoint.port())
                                    : fmt::format("{}:{}", address, endpoint.port());
}

}  // namespace tessera::net
