// SPDX-License-Identifier: Apache-2.0
//
// KeyRing: the keys that a server knows, from options and from a key file. The set is replaced as a
// whole by a reload; calls that were let in before go on. Who may do what with a key is its user's
// business. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/api_key.h"
#include "access/key_usage.h"
#include "base/clock.h"
#include "base/status.h"

namespace tessera::access {

class KeyRing {
 public:
  /// One key in use.
  struct Entry {
    std::shared_ptr<const ApiKey> key;
    std::shared_ptr<KeyUsage> usage;
  };

  /// `key_file` (see key_file.h) is read; empty: none. `clock` must outlive it.
  static Result<std::unique_ptr<KeyRing>> Make(std::vector<ApiKey> fixed, std::string key_file,
                                               const Clock& clock);

  /// Whether there is any fixed key or a key file, be it one without keys.
  bool asks_for_key() const { return !fixed_.empty() || !key_file_.empty(); }
  bool has_key_file() const { return !key_file_.empty(); }

  /// The entry of this key, expired or not. Digests are compared, all of them, each in constant
  /// time: how long it takes tells nothing about the keys.
  std::optional<Entry> Find(std::string_view key) const;
  bool IsExpired(const ApiKey& key) const;

  /// The keys as the file has them now, and the fixed ones. They count from Use on.
  Result<std::vector<ApiKey>> Load() const;
  /// A key keeps what it used, by its name.
  void Use(std::vector<ApiKey> keys);

  /// In the order of the file, fixed ones first.
  std::vector<Entry> entries() const { return *keys(); }

 private:
  using KeySet = std::vector<Entry>;

  KeyRing(std::vector<ApiKey> fixed, std::string key_file, const Clock& clock)
      : fixed_(std::move(fixed)), key_file_(std::move(key_file)), clock_(clock) {}
  std::shared_ptr<const KeySet> keys() const;

  const std::vector<ApiKey> fixed_;
  const std::string key_file_;
  const Clock& clock_;

  mutable std::mutex mutex_;
  std::shared_ptr<const KeySet> keys_ = std::make_shared<const KeySet>();
  ClientId last_client_ = 0;
};

}  // namespace tessera::access
