// SPDX-License-Identifier: Apache-2.0
//
// ApiError: what an OpenAI client gets when a request fails: an HTTP status and the object
// {"error": {"message", "type", "param", "code"}}. One place maps Status codes to HTTP.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "net/http.h"

namespace tessera::server::openai {

struct ApiError {
  int http_status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  std::string param;  // Field at fault; empty = null.
  std::string code;   // Stable word for programs; empty = null.
};

template <class T>
using ApiResult = std::expected<T, ApiError>;

/// 400 about one field.
ApiError BadField(std::string_view field, std::string message);
/// From a Status of a layer below; `param` names the field it is about, if one is.
ApiError FromStatus(const Status& status, std::string_view param = {});
ApiError ModelNotFound(std::string_view name, std::string_view served);

json::Object ErrorBody(const ApiError& error);
/// With Retry-After for 429 and 503 and WWW-Authenticate for 401.
net::Response ErrorResponse(const ApiError& error);

}  // namespace tessera::server::openai
