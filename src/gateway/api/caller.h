// SPDX-License-Identifier: Apache-2.0
//
// Who calls: HTTP Basic with the user as name (the password says nothing), or the same as a bearer
// token. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "gateway/spec/read_spec.h"
#include "net/http.h"

namespace tessera::gateway {

/// The user, 1 to kUserBytesMax printable bytes. 401 with the texts of llm-engine.
ApiResult<std::string> UserOf(const net::Request& request);

/// RFC 4648, with or without padding. Nothing for all else.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace tessera::gateway
