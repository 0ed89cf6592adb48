// SPDX-License-Identifier: Apache-2.0
#include "gateway/download/url_signer.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/random.h"

namespace tessera::gateway {
namespace {

constexpr size_t kKeyDigits = 64;

bool IsHexDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

}  // namespace

Result<UrlSigner> UrlSigner::Open(const std::filesystem::path& key_file) {
  if (!IsPresent(key_file)) {
    const std::string key = fmt::format("{:016x}{:016x}{:016x}{:016x}", SystemRandom64(),
                                        SystemRandom64(), SystemRandom64(), SystemRandom64());
    TESSERA_RETURN_IF_ERROR(WriteFileAtomic(key_file, key));
    return UrlSigner(key);
  }
  TESSERA_ASSIGN_OR_RETURN(std::string key, ReadFile(key_file, kKeyDigits));
  if (key.size() != kKeyDigits || !std::ranges::all_of(key, IsHexDigit))
    return Fail(DataLoss(key_file.string() + ": holds no key; remove it, and a new one is made"));
  return UrlSigner(std::move(key));
}

std::string UrlSigner::Sign(std::string_view thing, int64_t expires) const {
  const std::string text = fmt::format("{}\n{}", expires, thing);
  Sha256::Digest digest{};
  unsigned int size = digest.size();
  const unsigned char* made = HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
                                   reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                                   reinterpret_cast<unsigned char*>(digest.data()), &size);
  TESSERA_CHECK(made != nullptr && size == digest.size());
  return fmt::format("{}.{}", expires, HexOf(digest));
}

bool UrlSigner::Check(std::string_view thing, std::string_view token, int64_t now) const {
  int64_t expires = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), expires);
  if (error != std::errc() || expires < now) return false;
  const std::string good = Sign(thing, expires);
  return good.size() == token.size() && CRYPTO_memcmp(good.data(), token.data(), good.size()) == 0;
}

}  // namespace tessera::gateway
