// SPDX-License-Identifier: Apache-2.0
//
// RepositoryCache: one repository in the cache folder of huggingface_hub, in its layout, so that
// both tools read what either wrote:
//
//   <cache>/models--org--repo/refs/<revision>            commit, without end of line
//                             blobs/<sha256 or git sha1> the bytes, once for all commits
//                             snapshots/<commit>/<file>  relative links to blobs
//                             .tessera/<commit>.json     what the hub listed (listing.h); ours
//   <cache>/.locks/models--org--repo/<blob>.lock         held by whoever downloads the blob
//
// What is in `blobs` under its name is complete. A value without state; the disk is shared between
// processes. Names that come in were checked (repository_name.h, listing.h).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hub/listing.h"

namespace tessera::hub {

class RepositoryCache {
 public:
  /// `repository` is "org/repo".
  RepositoryCache(std::filesystem::path cache, std::string_view repository);

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path BlobPath(std::string_view etag) const { return folder_ / "blobs" / etag; }
  std::filesystem::path LockPath(std::string_view etag) const;
  std::filesystem::path SnapshotFolder(std::string_view commit) const {
    return folder_ / "snapshots" / commit;
  }
  /// For files without tensors (hub.h, PullHeaders); `model` is Selection::model.
  std::filesystem::path HeadersFolder(std::string_view commit, std::string_view model) const;

  /// The commit that a branch or tag had when it was last asked for; nothing when it never was. A
  /// commit is itself.
  std::optional<std::string> ReadRef(std::string_view revision) const;
  /// Nothing to do for a commit.
  Status WriteRef(std::string_view revision, const std::string& commit) const;

  /// Nothing when there is none, or none that can be read.
  std::optional<Listing> ReadListing(std::string_view commit) const;
  Status SaveListing(const Listing& listing) const;

  /// Makes the snapshot's link to the blob; a right one stays, anything else in its place goes.
  Status Link(std::string_view commit, const RepositoryFile& file) const;
  /// The same in a folder beside the snapshots that is as deep: `folder`/<file>.
  Status LinkInto(const std::filesystem::path& folder, const RepositoryFile& file) const;
  /// Whether the snapshot has the file with this size.
  bool HasFile(std::string_view commit, const RepositoryFile& file) const;

 private:
  std::filesystem::path cache_;
  std::string folder_name_;
  std::filesystem::path folder_;
};

/// "models--org--repo" -> "org/repo"; nothing for other names.
std::optional<std::string> RepositoryOfFolder(std::string_view folder_name);

}  // namespace tessera::hub
