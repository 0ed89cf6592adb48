// SPDX-License-Identifier: Apache-2.0
#include "hub/cache_pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/draft.h"
#include "base/file.h"
#include "base/hash.h"
#include "hub/limits.h"
#include "hub/listing.h"
#include "hub/plain_source.h"
#include "hub/repository_cache.h"
#include "hub/repository_name.h"

namespace tessera::hub {
namespace {

const CachedRepository::Snapshot* ChooseSnapshot(const CachedRepository& repository,
                                                 const std::string& commit) {
  const CachedRepository::Snapshot* best = nullptr;
  for (const auto& snapshot : repository.snapshots) {
    const auto& refs = snapshot.refs;
    if (snapshot.commit == commit || std::find(refs.begin(), refs.end(), commit) != refs.end())
      return &snapshot;
    if (!commit.empty()) continue;
    if (std::find(refs.begin(), refs.end(), "main") != refs.end()) return &snapshot;
    if (best == nullptr || !refs.empty()) best = &snapshot;
  }
  return best;
}

}  // namespace

Status AddToPack(const CachedRepository& repository, const std::string& commit,
                 std::vector<PackSource>* sources, json::Array* repositories) {
  const auto* snapshot = ChooseSnapshot(repository, commit);
  if (snapshot == nullptr)
    return NotFound(fmt::format("the cache has no complete snapshot of {}{}{}",
                                repository.repository, commit.empty() ? "" : "@", commit));
  const RepositoryCache cache(repository.folder.parent_path(), repository.repository);
  Listing listing{repository.repository, snapshot->commit, "", {}};
  const auto known = cache.ReadListing(snapshot->commit);
  if (known) listing.licence = known->licence;
  const std::filesystem::path folder = cache.SnapshotFolder(snapshot->commit);
  std::set<std::string> added;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (!it->is_regular_file(ignored)) continue;
    RepositoryFile file;
    file.name = it->path().lexically_relative(folder).string();
    const std::string blob = std::filesystem::read_symlink(it->path(), ignored).filename();
    if (ignored || !CheckFileName(file.name).ok() || (blob.size() != 64 && blob.size() != 40))
      continue;
    file.bytes = it->file_size(ignored);
    (blob.size() == 64 ? file.sha256 : file.git_sha1) = blob;
    listing.files.push_back(file);
    if (added.insert(blob).second)
      sources->push_back(
          {{fmt::format("{}{}/blobs/{}", kRepositoryEntries, repository.repository, blob),
            file.bytes, file.sha256},
           cache.BlobPath(blob)});
  }
  if (error) return ErrnoStatus(error.value(), "reading", folder);
  std::sort(listing.files.begin(), listing.files.end(),
            [](const RepositoryFile& a, const RepositoryFile& b) { return a.name < b.name; });
  TESSERA_ASSIGN_OR_RETURN(json::Value row, json::Parse(WriteListing(listing), {}, "listing"));
  json::Array refs;
  for (const std::string& ref : snapshot->refs) refs.emplace_back(ref);
  row.get_object()["refs"] = std::move(refs);
  repositories->push_back(std::move(row));
  return {};
}

struct RepositoryImport::State {
  RepositoryCache cache;
  Listing listing;
  std::vector<std::string> refs;
};

RepositoryImport::RepositoryImport(std::shared_ptr<State> state)
    : state_(std::move(state)),
      repository_(state_->listing.repository),
      commit_(state_->listing.commit),
      cache_(state_->cache.folder().parent_path()) {}

Result<RepositoryImport> RepositoryImport::Begin(const json::Value& row,
                                                 const std::filesystem::path& cache,
                                                 const std::filesystem::path& plain) {
  TESSERA_ASSIGN_OR_RETURN(Listing listing, ParseListing(json::Serialize(row), "the pack's list"));
  const bool is_plain = IsPlainRepository(listing.repository);
  auto state = std::make_shared<State>(
      State{RepositoryCache(is_plain ? plain : cache, listing.repository), listing, {}});
  if (const json::Value* refs = json::Find(row.get_object(), "refs"); refs != nullptr) {
    if (!refs->is_array()) return Fail(InvalidArgument("the pack's list: refs is no array"));
    for (const json::Value& ref : refs->get_array()) {
      if (!ref.is_string()) return Fail(InvalidArgument("the pack's list: a ref is no text"));
      state->refs.emplace_back(ref.get_string());
      TESSERA_RETURN_IF_ERROR(CheckRevision(state->refs.back()));
    }
  }
  return RepositoryImport(std::move(state));
}

std::string RepositoryImport::EntryPrefix() const {
  return fmt::format("{}{}/blobs/", kRepositoryEntries, repository_);
}

bool RepositoryImport::Has(const PackEntry& entry) const {
  const std::filesystem::path target =
      state_->cache.BlobPath(entry.path.substr(EntryPrefix().size()));
  std::error_code error;
  return std::filesystem::is_regular_file(target, error) &&
         std::filesystem::file_size(target, error) == entry.bytes && !error;
}

Status RepositoryImport::Take(PackReader& reader, const PackEntry& entry) {
  const std::string blob = entry.path.substr(EntryPrefix().size());
  const auto& files = state_->listing.files;
  const auto file = std::find_if(files.begin(), files.end(), [&](const RepositoryFile& one) {
    return one.etag() == blob && one.bytes == entry.bytes;
  });
  if (file == files.end())
    return InvalidArgument(
        fmt::format("the pack's entry {} is no file of {}", entry.path, repository_));
  if (!file->sha256.empty() && file->sha256 != entry.sha256)
    return DataLoss(fmt::format("the pack's entry {} has another hash than its name", entry.path));
  if (Has(entry)) {
    reader.Skip();
    return {};
  }
  const std::filesystem::path target = state_->cache.BlobPath(blob);
  std::error_code error;
  std::filesystem::create_directories(target.parent_path(), error);
  if (error) return ErrnoStatus(error.value(), "making", target.parent_path());
  TESSERA_ASSIGN_OR_RETURN(Draft draft, Draft::File(target));
  TESSERA_ASSIGN_OR_RETURN(const auto writer, FileWriter::Create(draft.path()));
  TESSERA_RETURN_IF_ERROR(reader.Next([&](ByteSpan bytes) { return writer->Append(bytes); }));
  TESSERA_RETURN_IF_ERROR(writer->Finish());
  if (file->sha256.empty() && !IsPlainRepository(repository_)) {
    TESSERA_ASSIGN_OR_RETURN(const auto mapping, MappedFile::Open(draft.path()));
    if (GitBlobHex(mapping->bytes()) != blob)
      return DataLoss(
          fmt::format("the pack's entry {} has another hash than its name", entry.path));
  }
  TESSERA_RETURN_IF_ERROR(draft.MoveTo(target));
  return SyncDirectory(target.parent_path());
}

Status RepositoryImport::Finish(bool replace, std::vector<std::string>* kept) {
  const Listing& listing = state_->listing;
  for (const RepositoryFile& file : listing.files) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(state_->cache.BlobPath(file.etag()), error))
      return DataLoss(fmt::format("the pack lacks {} of {}", file.name, repository_));
  }
  // What the hub listed is more than what a pack has; a listing that is there stays.
  if (!state_->cache.ReadListing(listing.commit))
    TESSERA_RETURN_IF_ERROR(state_->cache.SaveListing(listing));
  for (const RepositoryFile& file : listing.files)
    if (!state_->cache.HasFile(listing.commit, file))
      TESSERA_RETURN_IF_ERROR(state_->cache.Link(listing.commit, file));
  for (const std::string& ref : state_->refs) {
    const auto now = state_->cache.ReadRef(ref);
    if (now && *now != listing.commit && !replace) {
      kept->push_back(
          fmt::format("{}@{} stays at {}; name the other as {}@{}, or import with "
                      "--replace",
                      repository_, ref, *now, repository_, listing.commit));
      continue;
    }
    TESSERA_RETURN_IF_ERROR(state_->cache.WriteRef(ref, listing.commit));
  }
  return {};
}

}  // namespace tessera::hub
