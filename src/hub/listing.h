// SPDX-License-Identifier: Apache-2.0
//
// Listing: what a hub says a repository holds at one commit: names, sizes and hashes. Read from the
// API's answer (and from the copy of it that the cache keeps), so every field is checked here and
// nowhere else. A plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tessera::hub {

struct RepositoryFile {
  std::string name;  // As CheckFileName demands.
  uint64_t bytes = 0;
  std::string sha256;    // 64 hex digits of a file in large-file storage; empty: `git_sha1` counts.
  std::string git_sha1;  // 40 hex digits of a git blob; empty for large files.

  /// What the cache calls the file's bytes.
  const std::string& etag() const { return sha256.empty() ? git_sha1 : sha256; }
  bool operator==(const RepositoryFile&) const = default;
};

struct Listing {
  std::string repository;  // As the hub spells it; a renamed one has its new name.
  std::string commit;      // 40 hex digits.
  std::string licence;     // "apache-2.0"; empty when the repository does not say.
  std::vector<RepositoryFile> files;

  const RepositoryFile* Find(std::string_view name) const;
  bool operator==(const Listing&) const = default;
};

/// The JSON of GET /api/models/REPO/revision/REV?blobs=true. Files whose names we would not make
/// are left out and counted in `refused_names` (others of the repository stay usable); what does
/// not state size and hash fails. kInvalidArgument names `where` and the field.
Result<Listing> ParseListing(std::string_view text, std::string_view where,
                             size_t* refused_names = nullptr);

/// Text that ParseListing reads back.
std::string WriteListing(const Listing& listing);

}  // namespace tessera::hub
