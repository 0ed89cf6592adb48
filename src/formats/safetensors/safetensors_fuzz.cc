// SPDX-License-Identifier: Apache-2.0
//
// Any bytes: the reader answers with an index or an error; what it accepts can be shown and written
// so that it reads back the same. The bytes also serve as an index of shards.
#include <cstdint>

#include "base/check.h"
#include "formats/fuzz_checks.h"
#include "formats/safetensors/reader.h"
#include "formats/safetensors/sharded.h"
#include "formats/safetensors/writer.h"

namespace {

namespace safetensors = tessera::formats::safetensors;
using tessera::ByteSpan;

std::string Rewrite(const tessera::formats::ParameterIndex& index) {
  safetensors::TextPairs metadata;
  for (const auto& [key, value] : index.metadata().items())
    metadata.emplace_back(key, std::get<std::string>(value));
  std::vector<safetensors::WriteTensor> tensors;
  for (const auto& entry : index.entries()) tensors.push_back({entry.name, index.View(entry)});
  auto file = safetensors::Make(metadata, tensors);
  TESSERA_CHECK(file.has_value());
  return *std::move(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  if (auto map = safetensors::ParseShardMap(tessera::AsText(bytes), "input"); map.has_value())
    TESSERA_CHECK(map->shards.size() <= map->rows.size());
  const auto index = safetensors::Parse(bytes, "input");
  if (!index.has_value()) {
    TESSERA_CHECK(!index.error().ToString().empty());
    return 0;
  }
  tessera::formats::CheckShowable(*index);
  const std::string file = Rewrite(*index);
  const auto again = safetensors::Parse(tessera::AsBytes(file), "rewritten");
  TESSERA_CHECK(again.has_value());
  TESSERA_CHECK(Rewrite(*again) == file);
  return 0;
}
