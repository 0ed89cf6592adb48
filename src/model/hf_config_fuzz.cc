// SPDX-License-Identifier: Apache-2.0
//
// Any config.json is refused or gives a config that passes its own check and a graph that verifies,
// or is refused for its size; nothing crashes or grows with the numbers in the text.
#include <string_view>

#include "base/check.h"
#include "graph/verify.h"
#include "model/build.h"
#include "model/hf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = tessera::model::ParseHfConfig(text, "config.json");
  if (!config.has_value()) return 0;
  TESSERA_CHECK(tessera::model::CheckConfig(*config).ok());
  const auto graph = tessera::model::BuildGraph(*config);
  if (!graph.has_value()) return 0;
  TESSERA_CHECK(tessera::graph::Verify(*graph).ok());
  TESSERA_CHECK(tessera::graph::LayerCount(*graph) == config->layers);
  return 0;
}
