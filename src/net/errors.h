// SPDX-License-Identifier: Apache-2.0
//
// What the server says by itself: malformed HTTP, limits, overload, a handler that never answered.
// The dialect may shape it through an ErrorHook; the default is OpenAI's error object.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "net/http.h"

namespace tessera::net {

struct HttpError {
  int status = 400;
  std::string code{};     // Stable, for programs: "invalid_header", "body_too_large".
  std::string message{};  // What was wrong, what was expected. Never holds input bytes.
};

/// Makes the answer to an error. Called on any thread; must not block.
using ErrorHook = std::function<Response(const HttpError& error)>;

/// {"error":{"message","type","param":null,"code"}}; type is "invalid_request_error" for 4xx and
/// "server_error" otherwise. 503 carries Retry-After.
Response DefaultErrorResponse(const HttpError& error);

}  // namespace tessera::net
