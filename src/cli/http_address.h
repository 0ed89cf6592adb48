// SPDX-License-Identifier: Apache-2.0
//
// Addresses of servers that flags and variables name. Pure functions.
#pragma once

#include <string_view>

#include "base/status.h"

namespace tessera::cli {

/// Whether `address` begins with https:// or http://, has a host and may stand in messages: without
/// a password. kInvalidArgument that begins with `source`, the flag or variable.
Status CheckHttpAddress(std::string_view source, std::string_view address);

/// Whether it is this machine itself: 127.0.0.0/8, [::1] or localhost.
bool IsLoopbackAddress(std::string_view address);

}  // namespace tessera::cli
