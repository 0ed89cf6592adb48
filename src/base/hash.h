// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4) through OpenSSL: file identities, bundle keys, manifests.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "base/bytes.h"

namespace tessera {

/// Incremental SHA-256. Not thread-safe; use one object per thread.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  using Digest = std::array<std::byte, 32>;

  void Update(ByteSpan bytes);
  /// No other call may follow.
  Digest Finish();
  /// The same as 64 lower-case hex digits.
  std::string FinishHex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string Sha256Hex(ByteSpan bytes);
/// What git calls a blob of these bytes: SHA-1 over "blob SIZE\0" and them, 40 hex digits. Names
/// files as the hub does; no protection against an attacker.
std::string GitBlobHex(ByteSpan bytes);
/// 64 lower-case hex digits.
std::string HexOf(const Sha256::Digest& digest);

}  // namespace tessera
