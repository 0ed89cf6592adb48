// SPDX-License-Identifier: Apache-2.0
#include "hub/cache_scan.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/draft.h"
#include "base/file.h"
#include "base/hash.h"
#include "hub/file_lock.h"
#include "hub/limits.h"
#include "hub/repository_cache.h"
#include "hub/repository_name.h"

namespace tessera::hub {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kPartialMark = ".tessera.incomplete";

/// Entries of a folder, ascending; none when it cannot be read.
std::vector<fs::path> Entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    entries.push_back(it->path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

/// What a file takes: partial ones have holes.
uint64_t BytesOnDisk(const fs::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return 0;
  return std::min(static_cast<uint64_t>(info.st_size), static_cast<uint64_t>(info.st_blocks) * 512);
}

template <class Visit>
void ForEachFile(const fs::path& folder, const Visit& visit) {
  std::error_code error;
  size_t seen = 0;
  for (fs::recursive_directory_iterator it(folder, error), end;
       !error && it != end && seen < kMaxListedFiles; it.increment(error), ++seen)
    visit(*it);
}

CachedRepository ScanRepository(std::string name, const fs::path& folder) {
  CachedRepository repository;
  repository.repository = std::move(name);
  repository.folder = folder;
  for (const fs::path& blob : Entries(folder / "blobs")) {
    const uint64_t bytes = BytesOnDisk(blob);
    repository.bytes += bytes;
    if (blob.native().ends_with(".incomplete")) repository.partial_bytes += bytes;
  }
  for (const fs::path& snapshot : Entries(folder / "snapshots")) {
    if (!IsCommit(snapshot.filename().string())) continue;
    CachedRepository::Snapshot row;
    row.commit = snapshot.filename();
    ForEachFile(snapshot, [&](const fs::directory_entry& entry) {
      std::error_code ignored;
      if (!entry.is_regular_file(ignored)) return;
      ++row.files;
      const uint64_t bytes = entry.file_size(ignored);
      if (!ignored) row.bytes += bytes;
    });
    repository.snapshots.push_back(std::move(row));
  }
  ForEachFile(folder / "refs", [&](const fs::directory_entry& entry) {
    const auto commit = ReadFile(entry.path(), 256);
    if (!commit.has_value()) return;
    for (CachedRepository::Snapshot& snapshot : repository.snapshots)
      if (commit->starts_with(snapshot.commit))
        snapshot.refs.push_back(entry.path().lexically_relative(folder / "refs").string());
  });
  return repository;
}

}  // namespace

std::vector<CachedRepository> ScanCache(const fs::path& cache) {
  std::vector<CachedRepository> found;
  for (const fs::path& folder : Entries(cache))
    if (auto name = RepositoryOfFolder(folder.filename().string()))
      found.push_back(ScanRepository(*std::move(name), folder));
  return found;
}

Result<std::vector<fs::path>> FindDamagedBlobs(
    const CachedRepository& repository, const std::function<void(uint64_t, uint64_t)>& progress) {
  std::vector<fs::path> damaged;
  uint64_t done = 0;
  for (const fs::path& blob : Entries(repository.folder / "blobs")) {
    const std::string name = blob.filename();
    const bool is_hash = name.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!is_hash || (name.size() != 64 && name.size() != 40)) continue;
    const auto opened = MappedFile::Open(blob);
    if (!opened.has_value()) {  // A link in a circle, or a blob that may not be read.
      damaged.push_back(blob);
      continue;
    }
    const auto& file = *opened;
    const std::string hash =
        name.size() == 64 ? Sha256Hex(file->bytes()) : GitBlobHex(file->bytes());
    if (hash != name) damaged.push_back(blob);
    done += file->bytes().size();
    if (progress) progress(done, repository.bytes);
  }
  return damaged;
}

Status RemoveRepository(const CachedRepository& repository) {
  const RepositoryCache cache(repository.folder.parent_path(), repository.repository);
  std::vector<FileLock> locks;
  for (const fs::path& blob : Entries(repository.folder / "blobs")) {
    std::string name = blob.filename();
    if (!name.ends_with(kPartialMark)) continue;
    name.resize(name.size() - kPartialMark.size());
    TESSERA_ASSIGN_OR_RETURN(auto lock, FileLock::TryLock(cache.LockPath(name)));
    if (!lock)
      return FailedPrecondition(
          fmt::format("{} is being downloaded by another process", repository.repository));
    locks.push_back(*std::move(lock));
  }
  return RemoveAtOnce(repository.folder);
}

}  // namespace tessera::hub
