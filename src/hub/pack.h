// SPDX-License-Identifier: Apache-2.0
//
// Pack: models as one plain file, for machines without network:
//
//   tessera-pack 1 BYTES SHA256\n        of the JSON that follows
//   {"entries": [{"path", "bytes", "sha256"}, ...], "repositories": [...]}
//   the entries' bytes, one after the other
//
// The JSON stands first, so that names, sizes and room can be judged before a byte is written;
// every entry is hashed while it is read. What the paths mean is the callers' business
// (cache_pack.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/json.h"
#include "base/status.h"

namespace tessera::hub {

struct PackEntry {
  std::string path;  // As CheckFileName demands.
  uint64_t bytes = 0;
  std::string sha256;
};

struct PackManifest {
  std::vector<PackEntry> entries;
  json::Array repositories;  // Listings, as listing.h writes them, with "refs".
};

/// kInvalidArgument names the entry; also for a path that reaches outside or occurs twice.
Result<PackManifest> ParsePackManifest(std::string_view text);
std::string WritePackManifest(const PackManifest& manifest);

struct PackSource {
  PackEntry entry;             // `sha256` may be empty: it is taken from the bytes.
  std::filesystem::path file;  // Its bytes.
};
/// Bytes done and in all.
using PackProgress = std::function<void(uint64_t, uint64_t)>;

/// Writes `target` complete or not at all. kAlreadyExists when something is there; kDataLoss when a
/// file does not have the size or hash that its entry names.
Status WritePack(std::vector<PackSource> sources, json::Array repositories,
                 const std::filesystem::path& target, const PackProgress& progress);

/// Reads a pack from its beginning to its end. Belongs to one thread.
class PackReader {
 public:
  /// kInvalidArgument when it is no pack, kDataLoss when its JSON or size is damaged.
  static Result<PackReader> Open(const std::filesystem::path& path);

  const PackManifest& manifest() const { return manifest_; }
  /// The next entry's bytes in pieces; call it once for each, in order. kDataLoss when the hash
  /// differs (after all pieces were given), or what `sink` returns.
  Status Next(const std::function<Status(ByteSpan)>& sink);
  /// Passes over the next entry.
  void Skip();

 private:
  std::filesystem::path path_;
  std::ifstream file_;
  PackManifest manifest_;
  size_t next_ = 0;
};

}  // namespace tessera::hub
