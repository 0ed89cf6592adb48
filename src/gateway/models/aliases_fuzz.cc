// SPDX-License-Identifier: Apache-2.0
//
// Any models.toml, and any text as a model's name: errors say where, names come from the file, and
// the nearest of a name are at most three.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "gateway/models/model_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tessera::gateway::ModelTable;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto aliases = tessera::gateway::ParseAliases(text, "models.toml");
  if (!aliases.has_value())
    TESSERA_CHECK(aliases.error().ToString().find("models.toml") != std::string::npos);
  static const ModelTable kTable = *ModelTable::Read({});
  TESSERA_CHECK(kTable.Nearest(text).size() <= 3);
  const auto model = kTable.Resolve(text);
  // Without a root no path is a model, and nothing that could be a flag is.
  if (model.has_value()) TESSERA_CHECK(!model->starts_with('/') && !model->starts_with('-'));
  (void)kTable.ResolveCheckpoint(text);
  return 0;
}
