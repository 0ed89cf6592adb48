// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4) through OpenSSL: file identities, bundle keys, manifests.
#pragma once

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

  void Update(ByteSpan bytes);
  /// 64 lower-case hex digits. No other call may follow.
  std::string FinishHex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string Sha256Hex(ByteSpan bytes);

}  // namespace tessera
