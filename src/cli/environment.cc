// SPDX-License-Identifier: Apache-2.0
#include "cli/environment.h"

#include <cstdlib>

namespace tessera::cli {

std::optional<std::string> Environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::filesystem::path CacheFolder(const std::string& flag) {
  if (!flag.empty()) return flag;
  if (const auto cache = Environment("TESSERA_CACHE")) return *cache;
  if (const auto xdg = Environment("XDG_CACHE_HOME"))
    return std::filesystem::path(*xdg) / "tessera";
  if (const auto home = Environment("HOME"))
    return std::filesystem::path(*home) / ".cache" / "tessera";
  return std::filesystem::temp_directory_path() / "tessera";
}

std::string HubEndpoint() {
  std::string endpoint = Environment("HF_ENDPOINT").value_or("https://huggingface.co");
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return endpoint;
}

}  // namespace tessera::cli
