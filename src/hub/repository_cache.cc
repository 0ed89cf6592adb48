// SPDX-License-Identifier: Apache-2.0
#include "hub/repository_cache.h"

#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "base/draft.h"
#include "base/file.h"
#include "base/hash.h"
#include "hub/limits.h"
#include "hub/repository_name.h"

namespace tessera::hub {
namespace {

constexpr std::string_view kPrefix = "models--";

std::string FolderName(std::string_view repository) {
  std::string name(kPrefix);
  for (const char c : repository) c == '/' ? name += "--" : name += c;
  return name;
}

Status MakeFolder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return error ? ErrnoStatus(error.value(), "making", folder) : Status();
}

}  // namespace

std::optional<std::string> RepositoryOfFolder(std::string_view folder_name) {
  if (!folder_name.starts_with(kPrefix)) return std::nullopt;
  folder_name.remove_prefix(kPrefix.size());
  const size_t dashes = folder_name.find("--");
  if (dashes == std::string_view::npos) return std::nullopt;
  std::string repository(folder_name.substr(0, dashes));
  repository += '/';
  repository += folder_name.substr(dashes + 2);
  const auto name = ParseRepositoryName(repository, "");
  if (!name.has_value() || name->repository != repository) return std::nullopt;
  return repository;
}

RepositoryCache::RepositoryCache(std::filesystem::path cache, std::string_view repository)
    : cache_(std::move(cache)),
      folder_name_(FolderName(repository)),
      folder_(cache_ / folder_name_) {}

std::filesystem::path RepositoryCache::LockPath(std::string_view etag) const {
  return cache_ / ".locks" / folder_name_ / (std::string(etag) + ".lock");
}

std::optional<std::string> RepositoryCache::ReadRef(std::string_view revision) const {
  if (IsCommit(revision)) return std::string(revision);
  auto text = ReadFile(folder_ / "refs" / revision, 256);
  if (!text.has_value()) return std::nullopt;
  while (text->ends_with('\n')) text->pop_back();
  if (!IsCommit(*text)) return std::nullopt;
  return *std::move(text);
}

Status RepositoryCache::WriteRef(std::string_view revision, const std::string& commit) const {
  if (IsCommit(revision) || ReadRef(revision) == commit) return {};
  const std::filesystem::path path = folder_ / "refs" / revision;
  TESSERA_RETURN_IF_ERROR(MakeFolder(path.parent_path()));
  // What a killed process leaves among the refs would be one, also for other tools.
  TESSERA_RETURN_IF_ERROR(MakeFolder(folder_ / ".tessera"));
  return WriteFileAtomic(path, commit, folder_ / ".tessera");
}

std::optional<Listing> RepositoryCache::ReadListing(std::string_view commit) const {
  const std::filesystem::path path = folder_ / ".tessera" / (std::string(commit) + ".json");
  const auto text = ReadFile(path, kMaxListingBytes);
  if (!text.has_value()) return std::nullopt;
  auto listing = ParseListing(*text, path.string());
  if (!listing.has_value() || listing->commit != commit) return std::nullopt;
  return *std::move(listing);
}

Status RepositoryCache::SaveListing(const Listing& listing) const {
  if (ReadListing(listing.commit) == listing) return {};
  TESSERA_RETURN_IF_ERROR(MakeFolder(folder_ / ".tessera"));
  return WriteFileAtomic(folder_ / ".tessera" / (listing.commit + ".json"), WriteListing(listing));
}

std::filesystem::path RepositoryCache::HeadersFolder(std::string_view commit,
                                                     std::string_view model) const {
  std::string name = "headers-" + std::string(commit);
  if (!model.empty()) name += "-" + Sha256Hex(AsBytes(model)).substr(0, 8);
  return folder_ / ".tessera" / name;
}

Status RepositoryCache::Link(std::string_view commit, const RepositoryFile& file) const {
  return LinkInto(SnapshotFolder(commit), file);
}

Status RepositoryCache::LinkInto(const std::filesystem::path& folder,
                                 const RepositoryFile& file) const {
  const std::filesystem::path link = folder / file.name;
  std::filesystem::path target;
  // snapshots/<commit>/a/b -> ../../../blobs/<etag>: one ".." for each folder below the
  // repository's.
  const auto folders = std::count(file.name.begin(), file.name.end(), '/') + 2;
  for (int64_t i = 0; i < folders; ++i) target /= "..";
  target = target / "blobs" / file.etag();
  std::error_code error;
  if (std::filesystem::is_symlink(link, error) &&
      std::filesystem::read_symlink(link, error) == target)
    return {};
  TESSERA_RETURN_IF_ERROR(MakeFolder(link.parent_path()));
  // Made elsewhere, so that a crash leaves nothing in the snapshot; a relative link is only text.
  TESSERA_RETURN_IF_ERROR(MakeFolder(folder_ / ".tessera"));
  TESSERA_ASSIGN_OR_RETURN(const Draft draft, Draft::Folder(folder_ / ".tessera/link"));
  const std::filesystem::path temporary = draft.path() / "link";
  if (::symlink(target.c_str(), temporary.c_str()) != 0)
    return ErrnoStatus(errno, "linking", temporary);
  if (::rename(temporary.c_str(), link.c_str()) != 0)
    return ErrnoStatus(errno, "renaming to", link);
  return {};
}

bool RepositoryCache::HasFile(std::string_view commit, const RepositoryFile& file) const {
  const std::filesystem::path path = SnapshotFolder(commit) / file.name;
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) &&
         std::filesystem::file_size(path, error) == file.bytes && !error;
}

}  // namespace tessera::hub
