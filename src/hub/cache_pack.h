// SPDX-License-Identifier: Apache-2.0
//
// CachePack: downloaded repositories into a pack and out of it (pack.h). A blob is an entry
// "repositories/org/repo/blobs/<etag>"; the listing and the refs are in the pack's JSON.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "hub/cache_scan.h"
#include "hub/pack.h"

namespace tessera::hub {

inline constexpr std::string_view kRepositoryEntries = "repositories/";

/// Adds one snapshot of the repository: `commit`, or where "main" (else any ref, else the only
/// snapshot) points. kNotFound when there is none.
Status AddToPack(const CachedRepository& repository, const std::string& commit,
                 std::vector<PackSource>* sources, json::Array* repositories);

/// A repository of a pack on its way into a cache: takes entries, then becomes visible.
class RepositoryImport {
 public:
  /// `row` is one of PackManifest::repositories; it goes to `cache`, or to `plain` if it came from
  /// an address or a bucket (Settings::downloads). kInvalidArgument for one that is damaged.
  static Result<RepositoryImport> Begin(const json::Value& row, const std::filesystem::path& cache,
                                        const std::filesystem::path& plain);

  const std::string& repository() const { return repository_; }
  const std::string& commit() const { return commit_; }
  /// "repositories/org/repo/blobs/": entries that begin so are this one's.
  std::string EntryPrefix() const;
  const std::filesystem::path& cache() const { return cache_; }  // Where it goes.
  /// Whether the cache has the entry's bytes already.
  bool Has(const PackEntry& entry) const;
  /// Reads the reader's next entry, which is `entry`, into the cache: verified against the pack and
  /// against the hub's hash, then named. A blob that is there is passed over.
  Status Take(PackReader& reader, const PackEntry& entry);
  /// Links the snapshot. A ref that points elsewhere stays, and is named in `kept`, unless
  /// `replace`. kDataLoss when the pack lacked a blob.
  Status Finish(bool replace, std::vector<std::string>* kept);

 private:
  struct State;
  explicit RepositoryImport(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
  std::string repository_;
  std::string commit_;
  std::filesystem::path cache_;
};

}  // namespace tessera::hub
