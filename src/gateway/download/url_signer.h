// SPDX-License-Identifier: Apache-2.0
//
// UrlSigner: who has an address that this gateway made may get what it names, until it expires.
// HMAC-SHA256 (RFC 2104) under a key that stays in the state folder. Immutable; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tessera::gateway {

class UrlSigner {
 public:
  /// Reads the key, or makes one. kDataLoss when the file holds none.
  static Result<UrlSigner> Open(const std::filesystem::path& key_file);
  UrlSigner() = default;

  /// "<expires>.<64 hex digits>" for this thing, until that Unix second.
  std::string Sign(std::string_view thing, int64_t expires) const;
  /// Whether Sign gave it for this thing and it holds at `now`.
  bool Check(std::string_view thing, std::string_view token, int64_t now) const;

 private:
  explicit UrlSigner(std::string key) : key_(std::move(key)) {}
  std::string key_;
};

}  // namespace tessera::gateway
