// SPDX-License-Identifier: Apache-2.0
#include "gateway/api/context.h"

#include <fmt/format.h>

#include "base/random.h"

namespace tessera::gateway {
namespace {

constexpr uint32_t kDepthMax = 64;

}  // namespace

void SendJson(const net::ResponseWriter& writer, int status, const json::Object& body) {
  // Nobody is left to be told when the peer is gone.
  (void)writer.Send(net::Response::Json(status, json::Serialize(body)));
}

void SendError(const net::ResponseWriter& writer, const ApiError& error) {
  net::Response response = net::Response::Json(error.status, ErrorBody(error));
  if (error.status == 401) response.headers.Set("WWW-Authenticate", "Bearer");
  if (error.status == 429 || error.status == 503) response.headers.Set("Retry-After", "1");
  (void)writer.Send(std::move(response));
}

ApiResult<json::Object> BodyObject(const net::Request& request, uint64_t bytes_max) {
  auto body = json::Parse(request.body, {.max_bytes = bytes_max, .max_depth = kDepthMax}, "body");
  if (!body.has_value()) {
    const bool is_large = body.error().code() == Code::kResourceExhausted;
    return std::unexpected(
        ApiError{.status = is_large ? 413 : 400, .text = body.error().ToString()});
  }
  if (!body->is_object())
    return std::unexpected(
        ApiError{.status = 422,
                 .fields = {{"dict_type", {"body"}, "Input should be an object", json::Value()}}});
  return std::move(body->get_object());
}

std::string NewRequestId() {
  const uint64_t high = (SystemRandom64() & ~uint64_t{0xf000}) | 0x4000;
  const uint64_t low = (SystemRandom64() >> 2) | (uint64_t{1} << 63);
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff,
                     high & 0xffff, low >> 48, low & 0xffffffffffff);
}

}  // namespace tessera::gateway
