// SPDX-License-Identifier: Apache-2.0
//
// Bundle: a bundle opened for running: manifest, serving config, verified program and the mapped
// archive. Owns the mapping; immutable, so any thread may read it.
#pragma once

#include <filesystem>

#include "base/status.h"
#include "bundle/manifest.h"
#include "bundle/program.h"
#include "bundle/serving_config.h"
#include "formats/parameter_index.h"

namespace tessera::bundle {

struct Bundle {
  std::filesystem::path folder;
  Manifest manifest;
  ServingConfig config;
  Program program;
  formats::ParameterIndex archive;
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
Result<Bundle> OpenBundle(const std::filesystem::path& folder, Check check);

}  // namespace tessera::bundle
