// SPDX-License-Identifier: Apache-2.0
//
// CacheScan: what a cache of downloads holds, who wrote it whatever. Reads folders and sizes, and
// hashes when asked to. Names on disk that are none of the layout (repository_cache.h) are passed
// over.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace tessera::hub {

struct CachedRepository {
  std::string repository;        // "org/repo".
  std::filesystem::path folder;  // models--org--repo
  struct Snapshot {
    std::string commit;
    std::vector<std::string> refs;  // That point here.
    uint64_t bytes = 0;             // Of its files.
    size_t files = 0;
  };
  std::vector<Snapshot> snapshots;
  uint64_t bytes = 0;          // On disk, blobs once.
  uint64_t partial_bytes = 0;  // Of these in downloads that were interrupted.
};

/// Ascending by name. A cache that is absent is empty.
std::vector<CachedRepository> ScanCache(const std::filesystem::path& cache);

/// Compares every blob with the hash that its name is; gives the paths of those that differ.
/// `progress` gets bytes done and in all.
Result<std::vector<std::filesystem::path>> FindDamagedBlobs(
    const CachedRepository& repository, const std::function<void(uint64_t, uint64_t)>& progress);

/// Removes the repository from the cache. kFailedPrecondition while a download of it runs.
Status RemoveRepository(const CachedRepository& repository);

}  // namespace tessera::hub
