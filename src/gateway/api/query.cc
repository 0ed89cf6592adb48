// SPDX-License-Identifier: Apache-2.0
#include "gateway/api/query.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace tessera::gateway {

ApiError QueryError(std::string_view name, std::string msg) {
  return {.status = 422,
          .fields = {{"value_error", {"query", std::string(name)}, std::move(msg), json::Value()}}};
}

ApiResult<int64_t> QueryNumber(const net::Request& request, std::string_view name, int64_t low,
                               int64_t high, int64_t fallback) {
  const auto text = request.Query(name);
  if (!text.has_value()) return fallback;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < low || value > high)
    return std::unexpected(
        QueryError(name, fmt::format("Input should be a whole number from {} to {}", low, high)));
  return value;
}

}  // namespace tessera::gateway
