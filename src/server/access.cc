// SPDX-License-Identifier: Apache-2.0
#include "server/access.h"

namespace tessera::server {
namespace {

/// Takes the same time wherever the first difference is.
bool EqualSecrets(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^
                  static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  return difference == 0;
}

bool StartsWithBearer(std::string_view value) {
  constexpr std::string_view kScheme = "bearer ";
  if (value.size() < kScheme.size()) return false;
  for (size_t i = 0; i < kScheme.size(); ++i)
    if ((value[i] | 0x20) != kScheme[i]) return false;
  return true;
}

/// Of the Authorization header, else of the one that clients of the Messages API send.
std::optional<std::string_view> GivenKey(const net::Request& request) {
  const auto authorization = request.headers.Find("authorization");
  if (!authorization.has_value()) return request.headers.Find("x-api-key");
  if (!StartsWithBearer(*authorization)) return std::nullopt;
  return authorization->substr(7);
}

}  // namespace

std::optional<openai::ApiError> CheckKey(const ApiOptions& options, const net::Request& request) {
  if (options.api_key.empty()) return std::nullopt;
  const std::optional<std::string_view> key = GivenKey(request);
  if (key.has_value() && EqualSecrets(*key, options.api_key)) return std::nullopt;
  return openai::ApiError{
      .http_status = 401,
      .message = key.has_value() ? "the API key is not the one this server was started with"
                                 : "no API key: send it as \"Authorization: Bearer KEY\" or as "
                                   "\"X-Api-Key: KEY\"",
      .type = "invalid_request_error",
      .param = {},
      .code = "invalid_api_key"};
}

void AddCorsHeaders(const ApiOptions& options, net::Headers* headers) {
  if (options.cors_origin.empty()) return;
  headers->Set("Access-Control-Allow-Origin", options.cors_origin);
  headers->Set("Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
  if (options.cors_origin != "*") headers->Set("Vary", "Origin");
}

net::Response AnswerOptions(const ApiOptions& options, const net::Request& request,
                            std::string_view allow) {
  net::Response response;
  response.status = 204;
  response.headers.Set("Allow", allow);
  if (options.cors_origin.empty()) return response;
  response.headers.Set("Access-Control-Allow-Methods", allow);
  const auto wanted = request.headers.Find("access-control-request-headers");
  if (wanted.has_value()) response.headers.Set("Access-Control-Allow-Headers", *wanted);
  response.headers.Set("Access-Control-Max-Age", "600");
  return response;
}

}  // namespace tessera::server
