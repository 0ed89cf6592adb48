// SPDX-License-Identifier: Apache-2.0
#include "cli/disk_room.h"

#include <sys/stat.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

namespace tessera::cli {
namespace {

namespace fs = std::filesystem;

fs::path NearestThatIsThere(fs::path path) {
  std::error_code error;
  path = fs::absolute(path, error);
  while (!fs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  return path;
}

}  // namespace

std::optional<DiskLack> FindDiskLack(std::span<const DiskNeed> needs) {
  std::vector<std::pair<dev_t, DiskLack>> systems;
  for (const DiskNeed& need : needs) {
    if (need.bytes == 0) continue;
    const fs::path folder = NearestThatIsThere(need.folder);
    struct stat info {};
    if (::stat(folder.c_str(), &info) != 0) continue;
    const auto same = std::ranges::find_if(
        systems, [&](const auto& known) { return known.first == info.st_dev; });
    if (same == systems.end())
      systems.emplace_back(info.st_dev, DiskLack{folder, need.bytes, 0});
    else
      same->second.need += need.bytes;
  }
  for (auto& [device, lack] : systems) {
    std::error_code error;
    const fs::space_info space = fs::space(lack.folder, error);
    if (error || lack.need <= space.available) continue;
    lack.available = space.available;
    return std::move(lack);
  }
  return std::nullopt;
}

}  // namespace tessera::cli
