// SPDX-License-Identifier: Apache-2.0
//
// OpenListener: the listening socket of a server that another process will be, as
// ServerOptions::listen_fd. As long as somebody has it open, connections wait in it.
#pragma once

#include "base/status.h"
#include "net/server.h"

namespace tessera::net {

/// Of `listen_fd`, host, port and loopback_only; the caller's to close. Errors as Server::Start.
Result<int> OpenListener(const ServerOptions& options);

}  // namespace tessera::net
