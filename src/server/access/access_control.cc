// SPDX-License-Identifier: Apache-2.0
#include "server/access/access_control.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "access/local_peer.h"

namespace tessera::server {
namespace {

bool StartsWithBearer(std::string_view value) {
  constexpr std::string_view kScheme = "bearer ";
  if (value.size() < kScheme.size()) return false;
  for (size_t i = 0; i < kScheme.size(); ++i)
    if ((value[i] | 0x20) != kScheme[i]) return false;
  return true;
}

/// Of the Authorization header, else of the one that clients of the Messages API send.
std::optional<std::string_view> GivenKey(const net::Request& request) {
  std::optional<std::string_view> key;
  if (const auto authorization = request.headers.Find("authorization")) {
    if (StartsWithBearer(*authorization)) key = authorization->substr(7);
  } else {
    key = request.headers.Find("x-api-key");
  }
  if (key.has_value() && key->empty()) return std::nullopt;
  return key;
}

std::unexpected<openai::ApiError> Unauthorized(std::string message) {
  return std::unexpected(openai::ApiError{.http_status = 401,
                                          .message = std::move(message),
                                          .type = "invalid_request_error",
                                          .param = {},
                                          .code = "invalid_api_key"});
}

std::unexpected<openai::ApiError> Forbidden(std::string message, std::string code) {
  return std::unexpected(openai::ApiError{.http_status = 403,
                                          .message = std::move(message),
                                          .type = "permission_error",
                                          .param = {},
                                          .code = std::move(code)});
}

}  // namespace

Result<std::unique_ptr<AccessControl>> AccessControl::Make(const AccessOptions& options,
                                                           const Clock& clock) {
  std::vector<ApiKey> fixed;
  for (size_t i = 0; i < options.api_keys.size(); ++i) {
    if (options.api_keys[i].empty()) return Fail(InvalidArgument("an API key is empty"));
    // No name of a file looks like this one.
    fixed.push_back(
        {.name = fmt::format("--api-key #{}", i + 1),
         .digest = access::DigestOf(options.api_keys[i]),
         .scopes = access::ScopeBit(Scope::kInference) | access::ScopeBit(Scope::kMetrics)});
  }
  TESSERA_ASSIGN_OR_RETURN(std::unique_ptr<access::KeyRing> ring,
                           access::KeyRing::Make(std::move(fixed), options.key_file, clock));
  return std::unique_ptr<AccessControl>(new AccessControl(std::move(ring)));
}

openai::ApiError ToApiError(const Refusal& refusal) {
  return {.http_status = refusal.http_status,
          .message = refusal.message,
          .type = refusal.type,
          .param = refusal.param,
          .code = refusal.code};
}

openai::ApiResult<Caller> AccessControl::Admit(const net::Request& request, Scope scope) const {
  if (!asks_for_key()) {
    if (scope != Scope::kAdmin || access::IsLocalOperator(request)) return Caller{};
    return Forbidden(
        "without a key this is for programs on the server's own machine: call it at 127.0.0.1, or "
        "start the server with --api-keys and a key of the scope admin",
        "not_local");
  }
  if (scope == Scope::kMetrics && !has_key_file()) return Caller{};
  const std::optional<std::string_view> given = GivenKey(request);
  if (!given.has_value())
    return Unauthorized(
        "no API key: send it as \"Authorization: Bearer KEY\" or as \"X-Api-Key: KEY\"");
  const std::optional<Entry> found = ring_->Find(*given);
  if (!found.has_value()) return Unauthorized("the API key is none of this server's");
  const ApiKey& key = *found->key;
  if (ring_->IsExpired(key))
    return Unauthorized(fmt::format("the API key '{}' expired at {}", key.name,
                                    access::FormatUtcTime(*key.expires)));
  if (!key.Has(scope))
    return Forbidden(fmt::format("the API key '{}' does not have the scope {}", key.name,
                                 access::ScopeName(scope)),
                     "insufficient_scope");
  return Caller{.key = found->key, .usage = found->usage};
}

}  // namespace tessera::server
