// SPDX-License-Identifier: Apache-2.0
//
// Any text is refused or gives a graph that prints and parses to itself.
#include <string_view>

#include "base/check.h"
#include "graph/parse.h"
#include "graph/print.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto graph = tessera::graph::ParseGraph(text);
  if (!graph.has_value()) return 0;
  const std::string printed = tessera::graph::PrintGraph(*graph);
  const auto again = tessera::graph::ParseGraph(printed);
  TESSERA_CHECK(again.has_value());
  TESSERA_CHECK(*again == *graph);
  TESSERA_CHECK(tessera::graph::PrintGraph(*again) == printed);
  return 0;
}
