// SPDX-License-Identifier: Apache-2.0
//
// Any beginning of a weight file is refused, or tells a length that makes progress and ends: asked
// again with what it wanted it is never content with less than before.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "hub/header_range.h"
#include "hub/limits.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span<const uint8_t>(data, size));
  uint64_t known = 0;
  for (;;) {
    const auto needed = tessera::hub::HeaderBytesNeeded(bytes.first(known));
    if (!needed.has_value()) return 0;
    TESSERA_CHECK(*needed <= tessera::hub::kMaxWeightHeaderBytes);
    if (*needed <= known) return 0;
    if (known == size) return 0;  // The file is shorter than its header says.
    known = std::min<uint64_t>(*needed, size);
  }
}
