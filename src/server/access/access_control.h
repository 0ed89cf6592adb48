// SPDX-License-Identifier: Apache-2.0
//
// AccessControl: who is let in by the keys of this server (access/key_ring.h below). Thread-safe.
//
// Which calls ask for a key:
//   scope inference   if there is any key, or a key file
//   scope metrics     if there is a key file: its keys have scopes, so somebody thought of it
//   scope admin       if there is any key or a key file; else it is for this machine's users only
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "access/key_ring.h"
#include "base/clock.h"
#include "base/status.h"
#include "net/http.h"
#include "server/access/caller.h"
#include "server/openai/error.h"

namespace tessera::server {

struct AccessOptions {
  /// Keys themselves, each with the scopes inference and metrics, without limits.
  std::vector<std::string> api_keys{};
  std::string key_file{};  // See key_file.h; empty: none.
};

class AccessControl {
 public:
  using Entry = access::KeyRing::Entry;

  /// Reads the file. `clock` must outlive it.
  static Result<std::unique_ptr<AccessControl>> Make(const AccessOptions& options,
                                                     const Clock& clock);

  bool asks_for_key() const { return ring_->asks_for_key(); }
  bool has_key_file() const { return ring_->has_key_file(); }

  /// Who calls, or 401 (no key, an unknown or expired one), or 403 (a key without the scope). The
  /// key is "Authorization: Bearer KEY", else "X-Api-Key: KEY".
  openai::ApiResult<Caller> Admit(const net::Request& request, Scope scope) const;

  /// The keys as the file has them now, and those of the options. They count from Use on.
  Result<std::vector<ApiKey>> Load() const { return ring_->Load(); }
  /// A key keeps what it used, by its name.
  void Use(std::vector<ApiKey> keys) { ring_->Use(std::move(keys)); }

  std::vector<Entry> entries() const { return ring_->entries(); }

 private:
  explicit AccessControl(std::unique_ptr<access::KeyRing> ring) : ring_(std::move(ring)) {}

  const std::unique_ptr<access::KeyRing> ring_;
};

/// What OpenAI's clients get of it; Retry-After is the caller's.
openai::ApiError ToApiError(const Refusal& refusal);

}  // namespace tessera::server
