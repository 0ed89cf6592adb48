// SPDX-License-Identifier: Apache-2.0
#include "server/cors.h"

namespace tessera::server {

void AddCorsHeaders(const ApiOptions& options, net::Headers* headers) {
  if (options.cors_origin.empty()) return;
  headers->Set("Access-Control-Allow-Origin", options.cors_origin);
  headers->Set("Access-Control-Expose-Headers",
               "X-Request-Id, traceresponse, Retry-After, x-ratelimit-limit-requests, "
               "x-ratelimit-remaining-requests, x-ratelimit-reset-requests, "
               "x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, "
               "x-ratelimit-reset-tokens");
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
