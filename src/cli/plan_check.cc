// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <system_error>
#include <vector>

#include "cli/cached_bundles.h"
#include "cli/environment.h"
#include "cli/plan_compile.h"
#include "cli/plan_facts.h"
#include "cli/terminal.h"

#include "base/topology.h"

namespace tessera::cli {
namespace {

namespace fs = std::filesystem;

/// The nearest folder above that is there.
fs::path Existing(fs::path path) {
  std::error_code error;
  path = fs::absolute(path, error);
  while (!fs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  return path;
}

struct Disk {
  fs::path folder;
  uint64_t need = 0;
};

/// Folders on one file system share its room.
Status CheckDisk(const std::vector<Disk>& disks, const PlanFacts& facts) {
  std::vector<std::pair<dev_t, Disk>> systems;
  for (const Disk& disk : disks) {
    struct stat info {};
    const fs::path folder = Existing(disk.folder);
    if (disk.need == 0 || ::stat(folder.c_str(), &info) != 0) continue;  // Writing will say.
    const auto same = std::ranges::find_if(
        systems, [&](const auto& known) { return known.first == info.st_dev; });
    if (same == systems.end())
      systems.emplace_back(info.st_dev, Disk{folder, disk.need});
    else
      same->second.need += disk.need;
  }
  for (const auto& [device, disk] : systems) {
    std::error_code error;
    const fs::space_info space = fs::space(disk.folder, error);
    if (error || disk.need <= space.available) continue;
    return ResourceExhausted(fmt::format(
        "{} needs {} of disk ({} to download, {} for the bundle), {} are free in {}: free some "
        "space, or name other folders with --hf-cache-dir and --cache-dir",
        facts.model, HumanBytes(disk.need), HumanBytes(disks[0].need), HumanBytes(disks[1].need),
        HumanBytes(space.available), disk.folder.string()));
  }
  return {};
}

/// Whether the cache has a bundle of this commit: then it is the likely one, and takes no room.
bool HasBundle(const PlannedWork& work) {
  for (const CachedBundle& bundle : ScanBundles(work.bundles))
    if (bundle.manifest.has_value() && bundle.manifest->source.repository == work.repository &&
        bundle.manifest->source.revision == work.revision)
      return true;
  return false;
}

Status CheckToRun(const model::ModelSource& source, const PlannedWork& work,
                  const compiler::CompileOptions& options, uint64_t available, PlanFacts* facts) {
  MemoryForecast memory = ForecastMemory(*facts, work.kv_type);
  // Processes of a job have a rank each.
  if (JobSize() > 1) {
    for (const RankBytes& rank : BytesOfRanks(*facts, work.kv_type)) {
      if (rank.ranks != JobSize()) continue;
      memory.weights = rank.weights;
      memory.kv_per_token = rank.kv_per_token;
      available /= static_cast<uint64_t>(JobSizeHere());
    }
  }
  const uint64_t asked = std::max(static_cast<uint64_t>(work.kv.tokens),
                                  work.kv.bytes / std::max<uint64_t>(memory.kv_per_token, 1));
  const uint64_t positions =
      std::max(asked, std::min(kShortestSequence, static_cast<uint64_t>(facts->context)));
  if (CheckFits(*facts, memory, work.kv_type, positions, available).ok()) return {};
  AddFormats(source, options, facts);  // What would help.
  return CheckFits(*facts, memory, work.kv_type, positions, available);
}

}  // namespace

Status CheckHasTokenizer(const model::ModelSource& source) {
  const auto* json = std::get_if<model::JsonTokenizer>(&source.tokenizer);
  if (json == nullptr || !json->json.empty()) return {};
  return NotFound(
      fmt::format("{} has no tokenizer: put its tokenizer.json beside it", source.path.string()));
}

Status CheckWork(const model::ModelSource& source, const PlannedWork& work,
                 const compiler::CompileOptions& options) {
  TESSERA_RETURN_IF_ERROR(CheckHasTokenizer(source));
  TESSERA_ASSIGN_OR_RETURN(PlanFacts facts, FactsOfSource(source, options));
  facts.model = work.model;
  const uint64_t available = ReadTopology().memory_available;
  if (work.runs_here) TESSERA_RETURN_IF_ERROR(CheckToRun(source, work, options, available, &facts));
  const uint64_t compiling = ForecastCompile(facts).PrivateBytes();
  if (available > 0 && compiling > available)
    return ResourceExhausted(
        fmt::format("compiling {} needs {} of memory, {} are available: end other programs, or "
                    "compile it on another machine and copy the bundle (tessera cache export)",
                    work.model, HumanBytes(compiling), HumanBytes(available)));
  if (work.to_download == 0) return {};
  return CheckDisk({{work.downloads, work.to_download},
                    {work.bundles, HasBundle(work) ? 0 : facts.bundle_bytes}},
                   facts);
}

}  // namespace tessera::cli
