// SPDX-License-Identifier: Apache-2.0
//
// The key file of --api-keys: JSON, {"keys": [entry, ...]}, an entry for each key:
//
//   {"name": "alice",                    letters, digits, . _ @ -; unique
//    "hash": "sha256:9f86d081...",       of the key, as `tessera key` prints it
//    "scopes": ["inference"],            any of inference, metrics, admin (default: inference)
//    "priority": 0,                      its class, see ApiKey (default: 0)
//    "rpm": 60, "tpm": 100000,           requests and tokens a minute (default: no limit)
//    "concurrency": 4,                   open calls that generate (default: no limit)
//    "expires": "2027-01-31T00:00:00Z"}  UTC, or a date (default: never)
//
// Strict: what is not in this list is an error that names it, so that a misspelt limit is not a
// missing one. Errors never hold a value of `hash`: somebody may have put the key itself there.
// Pure functions, but for ReadKeyFile. Limits: limits.h.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "access/api_key.h"
#include "base/json.h"
#include "base/status.h"

namespace tessera::access {

/// kInvalidArgument "keys[3].rpm: ..."; kResourceExhausted past a limit. Names and keys are unique.
/// An empty list is one: nobody may call.
Result<std::vector<ApiKey>> ParseKeyFile(std::string_view text);
/// The same, with the file's name before every error.
Result<std::vector<ApiKey>> ReadKeyFile(const std::filesystem::path& path);

/// kInvalidArgument when two keys have one name or one digest.
Status CheckUnique(const std::vector<ApiKey>& keys);
/// kInvalidArgument for what is no name of a key.
Status CheckKeyName(std::string_view name);

/// The entry that reads back as `key`.
json::Object KeyEntry(const ApiKey& key);

}  // namespace tessera::access
