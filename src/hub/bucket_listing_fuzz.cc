// SPDX-License-Identifier: Apache-2.0
//
// Any answer of a store is refused, or lists objects within the limits.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "hub/bucket_listing.h"
#include "hub/limits.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto listing = tessera::hub::ParseBucketListing(text);
  if (!listing.has_value()) return 0;
  TESSERA_CHECK(listing->objects.size() <= tessera::hub::kMaxListedFiles);
  for (const auto& object : listing->objects) {
    TESSERA_CHECK(object.bytes <= tessera::hub::kMaxFileBytes);
    TESSERA_CHECK(object.key.size() <= size);
  }
  return 0;
}
