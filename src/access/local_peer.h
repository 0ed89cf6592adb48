// SPDX-License-Identifier: Apache-2.0
//
// Whether a call comes from a program on this machine. Pure functions.
#pragma once

#include <string_view>

#include "net/http.h"

namespace tessera::access {

/// "127.0.0.1:51234", "[::1]:80", "[::ffff:127.0.0.1]:80": as net::Request::peer.
bool IsLoopbackPeer(std::string_view peer);

/// The peer is this machine, and nothing says that it only passes on what another one asks for: no
/// header of a proxy, no Origin (a page in a browser here), and the name it called us by is this
/// machine's (a page whose name was made to lead here).
bool IsLocalOperator(const net::Request& request);

}  // namespace tessera::access
