// SPDX-License-Identifier: Apache-2.0
//
// HashMemo: SHA-256 of large source files, remembered in the cache by path and identity, so that a
// second start does not read gigabytes to learn that nothing changed. A memory only: whatever
// cannot be read or written is hashed again. Stateless; processes share the folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/file.h"

namespace tessera::bundle {

class HashMemo {
 public:
  /// Keeps one small file per source in `<cache>/hashes/`.
  explicit HashMemo(const std::filesystem::path& cache, const Clock& clock = Clock::Real())
      : folder_(cache / "hashes"), clock_(clock) {}

  /// The hash, if the file at `path` was remembered with this very identity.
  std::optional<std::string> Find(const std::filesystem::path& path,
                                  const FileIdentity& identity) const;
  /// Not for a file that changed within the last seconds: a write in the same tick of the file
  /// system's clock would go unnoticed.
  void Remember(const std::filesystem::path& path, const FileIdentity& identity,
                const std::string& sha256) const;
  /// The same at once, for a file that nobody writes any more: its content names it.
  void RememberFinal(const std::filesystem::path& path, const FileIdentity& identity,
                     const std::string& sha256) const;

 private:
  std::filesystem::path folder_;
  const Clock& clock_;
};

}  // namespace tessera::bundle
