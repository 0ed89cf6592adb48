// SPDX-License-Identifier: Apache-2.0
//
// BucketListing: the XML with which S3 answers ListObjectsV2. Reads the few elements that are
// needed, by name; everything else is passed over. A pure function over bytes from outside.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tessera::hub {

struct BucketListing {
  struct Object {
    std::string key;
    uint64_t bytes = 0;
    std::string etag;  // As the header has it, with quotes.
  };
  std::vector<Object> objects;
  std::string next;  // Continuation token; empty: this was the last page.
};

/// kInvalidArgument when it is no such answer; kResourceExhausted past kMaxListedFiles.
Result<BucketListing> ParseBucketListing(std::string_view text);

}  // namespace tessera::hub
