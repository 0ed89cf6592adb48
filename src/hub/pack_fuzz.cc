// SPDX-License-Identifier: Apache-2.0
//
// Any list of a pack is refused, or gives entries that stay in their folder and reads back the
// same; a repository of it is refused, or has such names, too.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "hub/cache_pack.h"
#include "hub/pack.h"
#include "hub/repository_name.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto manifest = tessera::hub::ParsePackManifest(text);
  if (!manifest.has_value()) return 0;
  for (const auto& entry : manifest->entries)
    TESSERA_CHECK(tessera::hub::CheckFileName(entry.path).ok());
  const auto again = tessera::hub::ParsePackManifest(tessera::hub::WritePackManifest(*manifest));
  TESSERA_CHECK(again.has_value());
  TESSERA_CHECK(again->entries.size() == manifest->entries.size());
  for (const auto& row : manifest->repositories) {
    const auto import =
        tessera::hub::RepositoryImport::Begin(row, "/nonexistent", "/nonexistent/plain");
    if (import.has_value()) TESSERA_CHECK(tessera::hub::IsCommit(import->commit()));
  }
  return 0;
}
