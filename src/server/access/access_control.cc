// SPDX-License-Identifier: Apache-2.0
#include "server/access/access_control.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "server/access/key_file.h"
#include "server/access/local_peer.h"

namespace tessera::server {
namespace {

/// Takes the same time wherever the first difference is. Both are digests.
bool EqualDigests(std::string_view a, std::string_view b) {
  TESSERA_CHECK(a.size() == b.size());
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
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
    fixed.push_back({.name = fmt::format("--api-key #{}", i + 1),
                     .digest = DigestOf(options.api_keys[i]),
                     .scopes = ScopeBit(Scope::kInference) | ScopeBit(Scope::kMetrics)});
  }
  std::unique_ptr<AccessControl> access(
      new AccessControl(std::move(fixed), options.key_file, clock));
  TESSERA_ASSIGN_OR_RETURN(std::vector<ApiKey> keys, access->Load());
  access->Use(std::move(keys));
  return access;
}

Result<std::vector<ApiKey>> AccessControl::Load() const {
  std::vector<ApiKey> keys = fixed_;
  if (has_key_file()) {
    TESSERA_ASSIGN_OR_RETURN(std::vector<ApiKey> more, ReadKeyFile(key_file_));
    std::ranges::move(more, std::back_inserter(keys));
  }
  TESSERA_RETURN_IF_ERROR(CheckUnique(keys));
  return keys;
}

void AccessControl::Use(std::vector<ApiKey> keys) {
  const std::lock_guard lock(mutex_);
  auto next = std::make_shared<KeySet>();
  for (ApiKey& key : keys) {
    const auto old = std::ranges::find_if(
        *keys_, [&](const Entry& entry) { return entry.key->name == key.name; });
    auto usage =
        old != keys_->end() ? old->usage : std::make_shared<KeyUsage>(++last_client_, clock_);
    usage->SetKey(key);
    next->push_back({std::make_shared<const ApiKey>(std::move(key)), std::move(usage)});
  }
  keys_ = std::move(next);
}

std::shared_ptr<const AccessControl::KeySet> AccessControl::keys() const {
  const std::lock_guard lock(mutex_);
  return keys_;
}

std::vector<AccessControl::Entry> AccessControl::entries() const {
  return *keys();
}

openai::ApiResult<Caller> AccessControl::Admit(const net::Request& request, Scope scope) const {
  if (!asks_for_key()) {
    if (scope != Scope::kAdmin || IsLocalOperator(request)) return Caller{};
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
  const std::string digest = DigestOf(*given);
  const std::shared_ptr<const KeySet> known = keys();
  const Entry* found = nullptr;
  for (const Entry& entry : *known)  // To the end, also when it is found.
    if (EqualDigests(entry.key->digest, digest)) found = &entry;
  if (found == nullptr) return Unauthorized("the API key is none of this server's");
  const ApiKey& key = *found->key;
  if (key.expires.has_value() && clock_.UnixSeconds() >= *key.expires)
    return Unauthorized(
        fmt::format("the API key '{}' expired at {}", key.name, FormatUtcTime(*key.expires)));
  if (!key.Has(scope))
    return Forbidden(
        fmt::format("the API key '{}' does not have the scope {}", key.name, ScopeName(scope)),
        "insufficient_scope");
  return Caller{.key = found->key, .usage = found->usage};
}

}  // namespace tessera::server
