// SPDX-License-Identifier: Apache-2.0
//
// Transports over Boost.Asio: TCP and TLS. The only header of this layer that includes Boost; only
// stream_transport.cc and server.cc include it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>

#include "base/status.h"
#include "net/tls_files.h"
#include "net/transport.h"

namespace boost::asio::ssl {
class context;
}

namespace tessera::net {

/// `socket` belongs to an io_context that one thread runs; that is the transport's loop.
std::unique_ptr<Transport> MakeTcpTransport(boost::asio::ip::tcp::socket socket);
std::unique_ptr<Transport> MakeTlsTransport(boost::asio::ip::tcp::socket socket,
                                            std::shared_ptr<boost::asio::ssl::context> context);

/// TLS 1.2 and up with the given PEM files. kInvalidArgument names the file that does not fit.
Result<std::shared_ptr<boost::asio::ssl::context>> MakeTlsContext(const TlsFiles& files);

}  // namespace tessera::net
