// SPDX-License-Identifier: Apache-2.0
#include "server/anthropic/error.h"

#include <fmt/format.h>

namespace tessera::server::anthropic {
namespace {

/// The word of the Messages API for a status.
std::string_view TypeOf(int http_status) {
  switch (http_status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return http_status < 500 ? "invalid_request_error" : "api_error";
  }
}

}  // namespace

json::Object ErrorBody(const openai::ApiError& error, std::string_view request_id) {
  // The field stands in the message there.
  const bool is_named =
      error.param.empty() || error.message.find(error.param) != error.message.npos;
  return {
      {"type", "error"},
      {"error",
       {{"type", TypeOf(error.http_status)},
        {"message", is_named ? error.message : fmt::format("{}: {}", error.param, error.message)}}},
      {"request_id", request_id}};
}

net::Response ErrorResponse(const openai::ApiError& error, std::string_view request_id) {
  net::Response response = openai::ErrorResponse(error);
  response.body = json::Serialize(ErrorBody(error, request_id));
  return response;
}

}  // namespace tessera::server::anthropic
