// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a key file: keys within their ranges that read back as they are, or an error, never
// a crash.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "access/key_file.h"
#include "access/limits.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace access = tessera::access;
  const auto keys =
      access::ParseKeyFile(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!keys.has_value()) {
    TESSERA_CHECK(!keys.error().message().empty());
    return 0;
  }
  TESSERA_CHECK(keys->size() <= access::kKeysMax && access::CheckUnique(*keys).ok());
  tessera::json::Array entries;
  for (const access::ApiKey& key : *keys) {
    TESSERA_CHECK(access::CheckKeyName(key.name).ok() && key.digest.size() == 64 &&
                  key.scopes != 0);
    entries.push_back(access::KeyEntry(key));
  }
  tessera::json::Object file;
  file["keys"] = std::move(entries);
  const std::string again = tessera::json::Serialize(file);
  const auto read = access::ParseKeyFile(again);
  TESSERA_CHECK(read.has_value() && *read == *keys);
  return 0;
}
