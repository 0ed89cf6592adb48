// SPDX-License-Identifier: Apache-2.0
#include "gateway/api/caller.h"

#include <openssl/evp.h>

#include <algorithm>
#include <optional>

#include "gateway/limits.h"

namespace tessera::gateway {
namespace {

constexpr std::string_view kBasic = "basic ", kBearer = "bearer ";

bool HasScheme(std::string_view header, std::string_view scheme) {
  return header.size() >= scheme.size() &&
         std::ranges::equal(header.substr(0, scheme.size()), scheme, [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b;
         });
}

std::unexpected<ApiError> Unauthorized(std::string text) {
  return std::unexpected(ApiError{.status = 401, .text = std::move(text)});
}

bool IsUser(std::string_view user) {
  return !user.empty() && user.size() <= kUserBytesMax &&
         std::ranges::all_of(user, [](char c) { return c > 0x20 && c < 0x7f; });
}

}  // namespace

std::optional<std::string> DecodeBase64(std::string_view text) {
  // EVP_DecodeBlock takes white space at both ends and padding anywhere, which is none of it.
  const std::string_view digits = text.substr(0, text.find_last_not_of('=') + 1);
  const size_t padding = (4 - digits.size() % 4) % 4;
  const bool is_plain = std::ranges::none_of(
      digits, [](char c) { return c == '=' || static_cast<unsigned char>(c) <= ' '; });
  if (!is_plain || padding > 2 || text.size() - digits.size() > padding) return std::nullopt;
  if (digits.empty()) return std::string();
  const std::string padded = std::string(digits) + std::string(padding, '=');
  std::string bytes(padded.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                   reinterpret_cast<const unsigned char*>(padded.data()),
                                   static_cast<int>(padded.size()));
  if (size < 0) return std::nullopt;
  bytes.resize(static_cast<size_t>(size) - padding);
  return bytes;
}

ApiResult<std::string> UserOf(const net::Request& request) {
  const auto header = request.headers.Find("Authorization");
  if (!header.has_value() || header->size() > 4 * kUserBytesMax)
    return Unauthorized("No authentication was passed in");
  std::string user;
  if (HasScheme(*header, kBearer)) {
    user = header->substr(kBearer.size());
  } else if (HasScheme(*header, kBasic)) {
    const auto decoded = DecodeBase64(header->substr(kBasic.size()));
    if (decoded.has_value()) user = decoded->substr(0, decoded->find(':'));
  } else {
    return Unauthorized("No authentication was passed in");
  }
  if (user.empty()) return Unauthorized("No authentication was passed in");
  if (!IsUser(user)) return Unauthorized("Could not authenticate user");
  return user;
}

}  // namespace tessera::gateway
