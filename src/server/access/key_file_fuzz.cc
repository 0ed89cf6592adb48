// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a key file: keys within their ranges that read back as they are, or an error, never
// a crash.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "server/access/key_file.h"
#include "server/limits.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace server = tessera::server;
  const auto keys =
      server::ParseKeyFile(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!keys.has_value()) {
    TESSERA_CHECK(!keys.error().message().empty());
    return 0;
  }
  TESSERA_CHECK(keys->size() <= server::kKeysMax && server::CheckUnique(*keys).ok());
  tessera::json::Array entries;
  for (const server::ApiKey& key : *keys) {
    TESSERA_CHECK(server::CheckKeyName(key.name).ok() && key.digest.size() == 64 &&
                  key.scopes != 0);
    entries.push_back(server::KeyEntry(key));
  }
  tessera::json::Object file;
  file["keys"] = std::move(entries);
  const std::string again = tessera::json::Serialize(file);
  const auto read = server::ParseKeyFile(again);
  TESSERA_CHECK(read.has_value() && *read == *keys);
  return 0;
}
