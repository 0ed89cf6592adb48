// SPDX-License-Identifier: Apache-2.0
//
// A text as manifest.json and as config.json of a bundle: refused, or what is read reads back the
// same when written again. Names of files in an accepted manifest stay inside the bundle.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "bundle/manifest.h"
#include "bundle/serving_config.h"

namespace {

namespace bundle = tessera::bundle;

void CheckManifest(std::string_view text) {
  const auto manifest = bundle::ReadManifest(text, "manifest.json");
  if (!manifest.has_value()) return;
  for (const bundle::FileRecord& file : manifest->files) {
    TESSERA_CHECK(!file.name.empty() && file.name != "..");
    TESSERA_CHECK(file.name.find('/') == std::string::npos);
    TESSERA_CHECK(manifest->FindFile(file.name) == &file);
  }
  const auto again = bundle::ReadManifest(bundle::WriteManifest(*manifest), "again");
  TESSERA_CHECK(again.has_value() && *again == *manifest);
}

void CheckServingConfig(std::string_view text) {
  const auto config = bundle::ReadServingConfig(text, "config.json");
  if (!config.has_value()) return;
  const std::string line = bundle::WriteServingConfig(*config);
  TESSERA_CHECK(line.find('\n') == std::string::npos);
  const auto again = bundle::ReadServingConfig(line, "again");
  TESSERA_CHECK(again.has_value() && *again == *config);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckManifest(text);
  CheckServingConfig(text);
  return 0;
}
