// SPDX-License-Identifier: Apache-2.0
//
// Bundle: a bundle opened for running: manifest, serving config, verified program and the mapped
// archive. Owns the mapping; immutable, so any thread may read it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bundle/manifest.h"
#include "bundle/program.h"
#include "bundle/serving_config.h"
#include "bundle/shard.h"
#include "formats/parameter_index.h"

namespace tessera::bundle {

struct Bundle {
  std::filesystem::path folder;
  Manifest manifest;
  ServingConfig config;
  Program program;                  // The whole one,
  std::vector<RankProgram> ranks;   // and what the ranks that were opened run; none: the whole.
  formats::ParameterIndex archive;  // model.irpa and the files of those ranks.
};

/// Ok for a folder with a manifest of ours, whole or damaged. kNotFound, with the reason, for any
/// other: many programs call a file manifest.json.
Status CheckIsBundle(const std::filesystem::path& folder);
inline bool IsBundle(const std::filesystem::path& folder) {
  return CheckIsBundle(folder).ok();
}

/// Reads and checks everything that runs: the files against the manifest as `check` says, the
/// program by itself and against the archive. kNotFound when the folder is no bundle, kDataLoss
/// for damage (one line: which file, what differs), kUnimplemented for another version or target.
/// With `rank` only that rank's file is looked at and mapped; without, all are.
Result<Bundle> OpenBundle(const std::filesystem::path& folder, Check check,
                          std::optional<int64_t> rank = std::nullopt);

/// What ranks run, and the archives that hold their weights.
struct Archives {
  std::vector<RankProgram> ranks;
  formats::ParameterIndex index;
};

/// The archives of a folder for a whole program and so many ranks, or one rank's alone. kDataLoss,
/// naming file and entry, when one is missing or of something else.
Result<Archives> OpenArchives(const Program& program, const std::filesystem::path& folder,
                              int64_t ranks, std::optional<int64_t> rank = std::nullopt);

/// The archives of a bundle for so many ranks: model.irpa, then a file for each rank.
std::vector<std::string> ArchiveNames(int64_t ranks);

/// The option of the manifest that says that heads were dealt unevenly.
inline constexpr std::string_view kAllowUnevenOption = "allow_uneven";

/// What runs, file by file, wherever the files lie.
struct Parts {
  std::filesystem::path program;                  // program.json
  std::filesystem::path config;                   // config.json
  std::vector<std::filesystem::path> parameters;  // All of them, in any order.
};

/// The same from files without a manifest: program, parameters and config are checked against each
/// other, and the first thing in which they differ is one line that names both files. The bundle's
/// manifest says only what the files say.
Result<Bundle> OpenParts(const Parts& parts);

}  // namespace tessera::bundle
