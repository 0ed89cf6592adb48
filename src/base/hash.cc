// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <openssl/evp.h>

#include <array>
#include <cstring>

#include "base/check.h"

namespace tessera {

struct Sha256::State {
  EVP_MD_CTX* context = nullptr;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  state_->context = EVP_MD_CTX_new();
  TESSERA_CHECK(state_->context != nullptr);
  TESSERA_CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() {
  EVP_MD_CTX_free(state_->context);
}

void Sha256::Update(ByteSpan bytes) {
  TESSERA_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

Sha256::Digest Sha256::Finish() {
  static_assert(sizeof(Digest) == 32);
  std::array<unsigned char, EVP_MAX_MD_SIZE> raw{};
  unsigned size = 0;
  TESSERA_CHECK(EVP_DigestFinal_ex(state_->context, raw.data(), &size) == 1);
  Digest digest;
  TESSERA_CHECK(size == digest.size());
  std::memcpy(digest.data(), raw.data(), digest.size());
  return digest;
}

std::string Sha256::FinishHex() {
  return HexOf(Finish());
}

namespace {

std::string Hex(ByteSpan bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const std::byte byte : bytes) {
    hex += kDigits[std::to_integer<unsigned>(byte) >> 4];
    hex += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return hex;
}

}  // namespace

std::string HexOf(const Sha256::Digest& digest) {
  return Hex(digest);
}

std::string GitBlobHex(ByteSpan bytes) {
  const std::string head = "blob " + std::to_string(bytes.size()) + '\0';
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(),
                                                                   EVP_MD_CTX_free);
  std::array<unsigned char, EVP_MAX_MD_SIZE> raw{};
  unsigned size = 0;
  TESSERA_CHECK(context != nullptr);
  TESSERA_CHECK(EVP_DigestInit_ex(context.get(), EVP_sha1(), nullptr) == 1);
  TESSERA_CHECK(EVP_DigestUpdate(context.get(), head.data(), head.size()) == 1);
  TESSERA_CHECK(EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1);
  TESSERA_CHECK(EVP_DigestFinal_ex(context.get(), raw.data(), &size) == 1);
  return Hex(std::as_bytes(std::span(raw)).first(size));
}

std::string Sha256Hex(ByteSpan bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.FinishHex();
}

}  // namespace tessera
