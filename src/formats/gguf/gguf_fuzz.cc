// SPDX-License-Identifier: Apache-2.0
//
// Any bytes: the reader answers with an index or an error. What it accepts can be shown, every
// tensor's bytes can be read, and writing it gives a file that reads back the same.
#include <cstdint>

#include "base/check.h"
#include "formats/describe.h"
#include "formats/fuzz_checks.h"
#include "formats/gguf/reader.h"
#include "formats/gguf/writer.h"

namespace {

namespace gguf = tessera::formats::gguf;
using tessera::ByteSpan;

std::string Rewrite(const tessera::formats::ParameterIndex& index) {
  std::vector<gguf::WriteTensor> tensors;
  for (const auto& entry : index.entries()) tensors.push_back({entry.name, index.View(entry)});
  auto file = gguf::Make(index.metadata(), tensors);
  TESSERA_CHECK(file.has_value());
  return *std::move(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto index = gguf::Parse(ByteSpan(reinterpret_cast<const std::byte*>(data), size), "input");
  if (!index.has_value()) {
    TESSERA_CHECK(!index.error().ToString().empty());
    return 0;
  }
  tessera::formats::CheckShowable(*index);
  const std::string file = Rewrite(*index);
  const auto again = gguf::Parse(tessera::AsBytes(file), "rewritten");
  TESSERA_CHECK(again.has_value());
  TESSERA_CHECK(Rewrite(*again) == file);
  return 0;
}
