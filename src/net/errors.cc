// SPDX-License-Identifier: Apache-2.0
#include "net/errors.h"

#include "base/json.h"

namespace tessera::net {

Response DefaultErrorResponse(const HttpError& error) {
  json::Object object;
  object["message"] = error.message;
  object["type"] = error.status < 500 ? "invalid_request_error" : "server_error";
  object["param"] = nullptr;
  object["code"] = error.code;
  Response response =
      Response::Json(error.status, json::Serialize(json::Object{{"error", std::move(object)}}));
  if (error.status == 503) response.headers.Add("Retry-After", "1");
  return response;
}

}  // namespace tessera::net
