// SPDX-License-Identifier: Apache-2.0
//
// Caller: who makes a call, as access_control.h found out. Without keys everybody is the same
// caller, client 0. Cheap to copy; thread-safe.
#pragma once

#include <memory>

#include "access/api_key.h"
#include "access/key_usage.h"
#include "engine/request.h"

namespace tessera::server {

using access::ApiKey;
using access::KeyUsage;
using access::Refusal;
using access::Scope;

struct Caller {
  std::shared_ptr<const ApiKey> key;  // As it was when the call came. Null: none was asked for.
  std::shared_ptr<KeyUsage> usage;    // With the key.

  engine::ClientId client() const { return usage == nullptr ? 0 : usage->client(); }
  bool is_admin() const { return key != nullptr && key->Has(Scope::kAdmin); }
  /// Whether it may end, and read, what `owner` began.
  bool MayTouch(engine::ClientId owner) const { return owner == client() || is_admin(); }
};

}  // namespace tessera::server
