// SPDX-License-Identifier: Apache-2.0
//
// Any answer of a hub is refused, or gives a listing whose names stay in their folder, that reads
// back the same, and from which files can be chosen (or not) without harm.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "hub/listing.h"
#include "hub/repository_name.h"
#include "hub/select_files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto listing = tessera::hub::ParseListing(text, "answer");
  if (!listing.has_value()) return 0;
  for (const auto& file : listing->files) {
    TESSERA_CHECK(tessera::hub::CheckFileName(file.name).ok());
    TESSERA_CHECK(file.etag().size() == 40 || file.etag().size() == 64);
  }
  const auto again = tessera::hub::ParseListing(tessera::hub::WriteListing(*listing), "copy");
  TESSERA_CHECK(again.has_value());
  TESSERA_CHECK(*again == *listing);
  for (const std::string_view quantization :
       {std::string_view(), std::string_view("Q4_0"), std::string_view("q")}) {
    const auto selection = tessera::hub::SelectFiles(*listing, quantization, "");
    if (!selection.has_value()) continue;
    TESSERA_CHECK(!selection->files.empty());
    for (const auto* file : selection->files) TESSERA_CHECK(listing->Find(file->name) == file);
  }
  // The same bytes as an index of shards.
  const auto shards = tessera::hub::SelectShards(*listing, text, "index");
  if (shards.has_value())
    for (const auto* file : *shards) TESSERA_CHECK(listing->Find(file->name) == file);
  return 0;
}
