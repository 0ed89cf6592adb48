// SPDX-License-Identifier: Apache-2.0
//
// Any bytes: an array or an error; an array written again reads back the same.
#include <cstdint>

#include "base/check.h"
#include "formats/npy/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace npy = tessera::formats::npy;
  const auto array = npy::Read({reinterpret_cast<const std::byte*>(data), size}, "input");
  if (!array.has_value()) return 0;
  const auto file = npy::Write(array->dtype, array->shape, array->bytes);
  TESSERA_CHECK(file.has_value());
  const auto again = npy::Read(tessera::AsBytes(*file), "output");
  TESSERA_CHECK(again.has_value());
  TESSERA_CHECK(again->dtype == array->dtype && again->shape == array->shape);
  TESSERA_CHECK(tessera::AsText(again->bytes) == tessera::AsText(array->bytes));
  return 0;
}
