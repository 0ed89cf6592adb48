// SPDX-License-Identifier: Apache-2.0
//
// Bundles of the cache as `tessera cache` sees them: found on disk, not by key. Folders that are no
// bundle of ours are passed over and never touched.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"
#include "bundle/manifest.h"
#include "hub/pack.h"

namespace tessera::cli {

struct CachedBundle {
  std::filesystem::path folder;
  std::string name;  // "Model/cpu-tp1-none-0123456789abcdef"
  Result<bundle::Manifest> manifest;
  uint64_t bytes = 0;  // Of its files.
};

/// Ascending by name.
std::vector<CachedBundle> ScanBundles(const std::filesystem::path& cache);

/// Adds the bundle's files as "bundles/<name>/<file>". kDataLoss for one whose manifest is damaged.
Status AddToPack(const CachedBundle& bundle, std::vector<hub::PackSource>* sources);

inline constexpr std::string_view kBundleEntries = "bundles/";

/// Takes the reader's next entries, those of one bundle (`first` is the index of its first), into
/// the cache: complete, or not at all. Gives how many it took. A bundle that is there stays, and
/// `note` says so.
Result<size_t> ImportBundle(hub::PackReader& reader, size_t first,
                            const std::filesystem::path& cache, std::string* note);

/// Whether a text has the form of CachedBundle::name: "Model/cpu-tp1-source-0123456789abcdef".
bool IsCachedBundleName(std::string_view name);

}  // namespace tessera::cli
