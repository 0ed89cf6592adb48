// SPDX-License-Identifier: Apache-2.0
//
// Any bytes: the reader answers with importances or an error; what it accepts has the promised
// values.
#include <cmath>
#include <cstdint>

#include "base/check.h"
#include "formats/imatrix/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto all = tessera::formats::imatrix::Parse(
      tessera::ByteSpan(reinterpret_cast<const std::byte*>(data), size), "input");
  if (!all.has_value()) {
    TESSERA_CHECK(!all.error().ToString().empty());
    return 0;
  }
  for (const auto& [name, values] : *all) {
    TESSERA_CHECK(!values.empty());
    for (const float value : values) TESSERA_CHECK(std::isfinite(value) && value >= 0);
  }
  return 0;
}
