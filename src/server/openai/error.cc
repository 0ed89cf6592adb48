// SPDX-License-Identifier: Apache-2.0
#include "server/openai/error.h"

#include <fmt/format.h>

#include <array>

namespace tessera::server::openai {
namespace {

struct Mapping {
  Code code;
  int http_status;
  std::string_view type;
  std::string_view name;
};

constexpr std::array kMappings = {
    Mapping{Code::kCancelled, 499, "cancelled_error", "request_cancelled"},
    Mapping{Code::kInvalidArgument, 400, "invalid_request_error", ""},
    Mapping{Code::kDeadlineExceeded, 504, "timeout_error", "deadline_exceeded"},
    Mapping{Code::kNotFound, 404, "invalid_request_error", "not_found"},
    Mapping{Code::kAlreadyExists, 409, "invalid_request_error", "already_exists"},
    Mapping{Code::kPermissionDenied, 403, "permission_error", "permission_denied"},
    Mapping{Code::kUnauthenticated, 401, "invalid_request_error", "invalid_api_key"},
    Mapping{Code::kResourceExhausted, 429, "rate_limit_error", "queue_full"},
    Mapping{Code::kFailedPrecondition, 400, "invalid_request_error", "failed_precondition"},
    Mapping{Code::kOutOfRange, 400, "invalid_request_error", "out_of_range"},
    Mapping{Code::kUnimplemented, 400, "invalid_request_error", "unsupported"},
    Mapping{Code::kUnavailable, 503, "server_error", "unavailable"},
    Mapping{Code::kDataLoss, 500, "server_error", "data_loss"},
    Mapping{Code::kInternal, 500, "server_error", "internal_error"},
};

json::Value TextOrNull(std::string_view text) {
  return text.empty() ? json::Value(nullptr) : json::Value(text);
}

}  // namespace

ApiError BadField(std::string_view field, std::string message) {
  return {.http_status = 400,
          .message = std::move(message),
          .type = "invalid_request_error",
          .param = std::string(field),
          .code = "invalid_value"};
}

ApiError FromStatus(const Status& status, std::string_view param) {
  // A field that is past a limit stays so: trying again later does not help.
  if (!param.empty() && status.code() == Code::kResourceExhausted)
    return BadField(param, fmt::format("{}: {}", param, status.ToString()));
  for (const Mapping& mapping : kMappings)
    if (mapping.code == status.code())
      return {.http_status = mapping.http_status,
              .message = status.ToString(),
              .type = std::string(mapping.type),
              .param = std::string(param),
              .code = std::string(mapping.name)};
  return {.http_status = 500,
          .message = status.ToString(),
          .type = "server_error",
          .param = {},
          .code = "internal_error"};
}

ApiError ModelNotFound(std::string_view name, std::string_view served) {
  return {.http_status = 404,
          .message =
              fmt::format("the model '{:.200}' does not exist; this server has '{}'", name, served),
          .type = "invalid_request_error",
          .param = "model",
          .code = "model_not_found"};
}

json::Object ErrorBody(const ApiError& error) {
  return {{"error",
           {{"message", error.message},
            {"type", error.type},
            {"param", TextOrNull(error.param)},
            {"code", TextOrNull(error.code)}}}};
}

net::Response ErrorResponse(const ApiError& error) {
  net::Response response =
      net::Response::Json(error.http_status, json::Serialize(ErrorBody(error)));
  // A queue of short answers moves within a second or two; a restart takes longer.
  if (error.http_status == 429) response.headers.Set("Retry-After", "1");
  if (error.http_status == 503) response.headers.Set("Retry-After", "5");
  if (error.http_status == 401) response.headers.Set("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace tessera::server::openai
