// SPDX-License-Identifier: Apache-2.0
//
// AccessControl: the keys of this server and who is let in by them. The set of keys is replaced as
// a whole by a reload; calls that were let in before go on. Thread-safe.
//
// Which calls ask for a key:
//   scope inference   if there is any key, or a key file
//   scope metrics     if there is a key file: its keys have scopes, so somebody thought of it
//   scope admin       if there is any key or a key file; else it is for this machine's users only
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

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
  /// One key in use.
  struct Entry {
    std::shared_ptr<const ApiKey> key;
    std::shared_ptr<KeyUsage> usage;
  };

  /// Reads the file. `clock` must outlive it.
  static Result<std::unique_ptr<AccessControl>> Make(const AccessOptions& options,
                                                     const Clock& clock);

  bool asks_for_key() const { return !fixed_.empty() || !key_file_.empty(); }
  bool has_key_file() const { return !key_file_.empty(); }

  /// Who calls, or 401 (no key, an unknown or expired one), or 403 (a key without the scope). The
  /// key is "Authorization: Bearer KEY", else "X-Api-Key: KEY". Digests are compared, all of them,
  /// each in constant time: how long it takes tells nothing about the keys.
  openai::ApiResult<Caller> Admit(const net::Request& request, Scope scope) const;

  /// The keys as the file has them now, and those of the options. They count from Use on.
  Result<std::vector<ApiKey>> Load() const;
  /// A key keeps what it used, by its name.
  void Use(std::vector<ApiKey> keys);

  /// In the order of the file.
  std::vector<Entry> entries() const;

 private:
  using KeySet = std::vector<Entry>;

  AccessControl(std::vector<ApiKey> fixed, std::string key_file, const Clock& clock)
      : fixed_(std::move(fixed)), key_file_(std::move(key_file)), clock_(clock) {}
  std::shared_ptr<const KeySet> keys() const;

  const std::vector<ApiKey> fixed_;
  const std::string key_file_;
  const Clock& clock_;

  mutable std::mutex mutex_;
  std::shared_ptr<const KeySet> keys_ = std::make_shared<const KeySet>();
  engine::ClientId last_client_ = 0;
};

}  // namespace tessera::server
