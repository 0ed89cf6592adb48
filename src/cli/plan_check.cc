// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/cached_bundles.h"
#include "cli/disk_room.h"
#include "cli/environment.h"
#include "cli/plan_compile.h"
#include "cli/plan_facts.h"
#include "cli/terminal.h"

#include "base/topology.h"

namespace tessera::cli {
namespace {

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
  // Both only where it seems to be too little, for a bundle that is there takes nothing.
  const uint64_t compiling = ForecastCompile(facts, work.certify).PrivateBytes();
  if (available > 0 && compiling > available && !HasBundle(work))
    return ResourceExhausted(
        fmt::format("compiling {} needs {} of memory, {} are available: end other programs, or "
                    "compile it on another machine and copy the bundle (tessera cache export)",
                    work.model, HumanBytes(compiling), HumanBytes(available)));
  if (work.to_download == 0) return {};  // Packing asks for its own room.
  const uint64_t bundle = HasBundle(work) ? 0 : facts.bundle_bytes;
  const auto lack = FindDiskLack(
      std::array{DiskNeed{work.downloads, work.to_download}, DiskNeed{work.bundles, bundle}});
  if (!lack) return {};
  return ResourceExhausted(fmt::format(
      "{} needs {} of disk ({} to download, {} for the bundle), {} are free in {}: free some "
      "space, or name other folders with --hf-cache-dir and --cache-dir",
      work.model, HumanBytes(lack->need), HumanBytes(work.to_download), HumanBytes(bundle),
      HumanBytes(lack->available), lack->folder.string()));
}

}  // namespace tessera::cli
