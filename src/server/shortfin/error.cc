// SPDX-License-Identifier: Apache-2.0
#include "server/shortfin/error.h"

#include <string>

namespace tessera::server::shortfin {

net::Response ErrorResponse(const openai::ApiError& error) {
  // Codes as the original names them; what it has no name for keeps ours.
  const std::string code = error.code.empty()           ? "INVALID_REQUEST_ARGS"
                           : error.code == "queue_full" ? "QUEUE_FULL"
                                                        : error.code;
  net::Response response = openai::ErrorResponse(error);
  response.body = json::Serialize(json::Object{{"error", error.message}, {"code", code}});
  return response;
}

}  // namespace tessera::server::shortfin
