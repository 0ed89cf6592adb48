// SPDX-License-Identifier: Apache-2.0
#include "hub/hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/draft.h"
#include "base/file.h"
#include "hub/curl_http.h"
#include "hub/headers.h"
#include "hub/hub_api.h"
#include "hub/limits.h"
#include "hub/nearest.h"
#include "hub/partial_file.h"
#include "hub/plain_source.h"
#include "hub/repository_cache.h"
#include "hub/select_files.h"

namespace tessera::hub {

/// A revision whose files are known.
struct Hub::Resolved {
  RepositoryCache cache;
  Listing listing;
  std::string revision;  // As it was asked for.
  bool is_online = false;
  std::map<std::string, PlainSource::File> plain;  // Of an address or bucket, online.
};

/// A revision, the files of it that a model needs, and what is known of the model so far.
struct Hub::Chosen {
  std::unique_ptr<const Resolved> resolved;  // `selection` points into it.
  Selection selection;
  LocalModel model;
};

namespace {

std::string RevisionOf(const RepositoryName& name) {
  return name.revision.empty() ? "main" : name.revision;
}

/// A cache that huggingface_hub wrote has no listing of ours: what its snapshot holds is one.
std::optional<Listing> ListingOfSnapshot(const RepositoryCache& cache,
                                         const std::string& repository, const std::string& commit) {
  Listing listing{repository, commit, "", {}};
  const std::filesystem::path folder = cache.SnapshotFolder(commit);
  std::error_code error;
  std::filesystem::recursive_directory_iterator it(folder, error), end;
  for (; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (!it->is_regular_file(ignored)) continue;
    RepositoryFile file;
    file.name = it->path().lexically_relative(folder).string();
    if (!CheckFileName(file.name).ok()) continue;
    file.bytes = it->file_size(ignored);
    std::filesystem::path blob = std::filesystem::read_symlink(it->path(), ignored).filename();
    (blob.native().size() == 64 ? file.sha256 : file.git_sha1) = blob.string();
    listing.files.push_back(std::move(file));
    if (listing.files.size() > kMaxListedFiles) return std::nullopt;
  }
  if (listing.files.empty()) return std::nullopt;
  return listing;
}

/// A source that changes while it is downloaded is begun anew so often.
constexpr int kMaxChanges = 2;

bool IsWeights(std::string_view name) {
  return name.ends_with(".safetensors") || name.ends_with(".gguf") || name.ends_with(".irpa");
}

Status NotCached(const std::string& repository, const std::string& revision,
                 const std::filesystem::path& cache, std::string_view what) {
  return NotFound(fmt::format(
      "{}@{} is not complete in the cache {}{}, and this is offline: pull it while online (tessera "
      "pull {}), or copy a pack of it (tessera cache import)",
      repository, revision, cache.string(), what, repository));
}

/// Whether every file is there with its size.
bool HasAll(const std::filesystem::path& folder, const Selection& selection) {
  return std::all_of(selection.files.begin(), selection.files.end(),
                     [&](const RepositoryFile* file) {
                       std::error_code error;
                       const std::filesystem::path path = folder / file->name;
                       return std::filesystem::is_regular_file(path, error) &&
                              std::filesystem::file_size(path, error) == file->bytes && !error;
                     });
}

/// A name that nothing has may be a slip of one that the cache has.
Status WithNearest(Status status, const std::string& repository,
                   const std::filesystem::path& cache) {
  if (status.code() != Code::kNotFound) return status;
  const auto nearest = NearestInCache(repository, cache);
  if (!nearest) return status;
  return NotFound(
      fmt::format("{}; or is {} meant, which the cache has?", status.message(), *nearest));
}

}  // namespace

Hub::Hub(Settings settings) : settings_(std::move(settings)) {
  http_ = [this_settings = settings_] { return NewCurlHttp(this_settings); };
}

Hub::Hub(Settings settings, HttpFactory http)
    : settings_(std::move(settings)), http_(std::move(http)) {}

Result<Listing> Hub::ResolvePlain(Http& http, const RepositoryName& name,
                                  Resolved* resolved) const {
  TESSERA_ASSIGN_OR_RETURN(PlainSource source, ReadPlainSource(http, settings_, name));
  resolved->plain = std::move(source.files);
  return std::move(source.listing);
}

Result<Hub::Resolved> Hub::Resolve(const RepositoryName& name, const DownloadEvents& events) const {
  const bool is_plain = name.place != Place::kHub;
  const std::string revision = RevisionOf(name);
  const std::string repository = is_plain ? PlainRepository(name) : name.repository;
  const std::string shown = is_plain ? ShownSource(name) : name.repository;
  Resolved resolved{RepositoryCache(is_plain ? settings_.downloads : settings_.cache, repository),
                    {},
                    revision,
                    false,
                    {}};
  const auto cached = [&]() -> std::optional<Listing> {
    const auto commit = resolved.cache.ReadRef(revision);
    if (!commit) return std::nullopt;
    if (auto listing = resolved.cache.ReadListing(*commit)) return listing;
    return ListingOfSnapshot(resolved.cache, repository, *commit);
  };
  // What a commit holds never changes.
  if (settings_.offline) {
    if (auto listing = cached()) {
      resolved.listing = *std::move(listing);
      return resolved;
    }
    return Fail(WithNearest(NotCached(shown, revision, resolved.cache.folder().parent_path(), ""),
                            repository, settings_.cache));
  }
  if (IsCommit(revision)) {
    if (auto listing = resolved.cache.ReadListing(revision)) {
      resolved.listing = *std::move(listing);
      resolved.is_online = true;
      return resolved;
    }
  }
  TESSERA_ASSIGN_OR_RETURN(const auto http, http_());
  auto listing = is_plain ? ResolvePlain(*http, name, &resolved)
                          : GetListing(*http, settings_, repository, revision);
  if (listing.has_value()) {
    resolved.listing = *std::move(listing);
    resolved.is_online = true;
    return resolved;
  }
  auto fallback = listing.error().code() == Code::kUnavailable ? cached() : std::nullopt;
  if (!fallback) return Fail(WithNearest(listing.error(), repository, settings_.cache));
  if (events.on_note)
    events.on_note(fmt::format("{}; using what the cache has of {}: commit {}",
                               listing.error().ToString(), shown, fallback->commit));
  resolved.listing = *std::move(fallback);
  return resolved;
}

DownloadFile Hub::ToDownload(const Resolved& resolved, const RepositoryFile& file) const {
  const Listing& listing = resolved.listing;
  DownloadFile download;
  download.name = file.name;
  download.bytes = file.bytes;
  download.target = resolved.cache.BlobPath(file.etag());
  download.lock = resolved.cache.LockPath(file.etag());
  if (const auto plain = resolved.plain.find(file.name); plain != resolved.plain.end()) {
    download.url = plain->second.url;
    download.validator = plain->second.validator;
    download.aws = &settings_.aws;
    return download;
  }
  download.url = FileUrl(settings_, listing.repository, listing.commit, file.name);
  download.bearer = settings_.token;
  download.sha256 = file.sha256;
  download.git_sha1 = file.git_sha1;
  download.explain = [this, repository = listing.repository,
                      commit = listing.commit](const HttpHead& head) {
    return RefusalOf(head, settings_, repository, commit);
  };
  return download;
}

Status Hub::Get(const Resolved& resolved, const std::vector<const RepositoryFile*>& files,
                const DownloadEvents& events, LocalModel* model) const {
  const Listing& listing = resolved.listing;
  std::vector<DownloadFile> wanted;
  for (const RepositoryFile* file : files)
    if (!resolved.cache.HasFile(listing.commit, *file))
      wanted.push_back(ToDownload(resolved, *file));
  if (settings_.offline)
    for (const DownloadFile& file : wanted)
      if (!IsComplete(file))
        return NotCached(listing.repository, resolved.revision, settings_.cache,
                         fmt::format(" ({} is missing)", file.name));
  if (wanted.empty()) return {};
  TESSERA_ASSIGN_OR_RETURN(const DownloadReport report, Download(wanted, settings_, http_, events));
  model->fetched += report.fetched;
  for (const RepositoryFile* file : files)
    if (std::find(report.new_files.begin(), report.new_files.end(), file->name) !=
        report.new_files.end())
      model->verified.push_back(
          {resolved.cache.SnapshotFolder(listing.commit) / file->name, file->sha256});
  return {};
}

Result<Selection> Hub::Select(const RepositoryName& name, const Resolved& resolved,
                              const DownloadEvents& events, LocalModel* model) const {
  const Listing& listing = resolved.listing;
  const RepositoryCache& cache = resolved.cache;
  TESSERA_ASSIGN_OR_RETURN(Selection selection, SelectFiles(listing, name.quantization, name.file));
  const bool is_plain = name.place != Place::kHub;
  model->repository = is_plain ? ShownSource(name) : listing.repository;
  model->revision = is_plain ? "" : listing.commit;
  model->licence = listing.licence;
  // Losing it costs only what offline use knows; a cache that cannot be written may have it all.
  if (resolved.is_online) (void)cache.SaveListing(listing);
  if (selection.index.empty()) return selection;
  const RepositoryFile* index = listing.Find(selection.index);
  TESSERA_RETURN_IF_ERROR(Get(resolved, {index}, events, model));
  const std::filesystem::path path = cache.HasFile(listing.commit, *index)
                                         ? cache.SnapshotFolder(listing.commit) / index->name
                                         : cache.BlobPath(index->etag());
  TESSERA_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxIndexBytes));
  TESSERA_ASSIGN_OR_RETURN(const auto shards, SelectShards(listing, text, index->name));
  selection.files.insert(selection.files.end(), shards.begin(), shards.end());
  return selection;
}

Result<Hub::Chosen> Hub::Choose(const RepositoryName& name, const DownloadEvents& events) const {
  TESSERA_ASSIGN_OR_RETURN(Resolved resolved, Resolve(name, events));
  Chosen chosen;
  chosen.resolved = std::make_unique<const Resolved>(std::move(resolved));
  TESSERA_ASSIGN_OR_RETURN(chosen.selection, Select(name, *chosen.resolved, events, &chosen.model));
  return chosen;
}

/// Small files are there already.
Status Hub::Inspect(const Resolved& resolved, const Selection& selection,
                    const DownloadEvents& events, const InspectFn& inspect,
                    LocalModel* model) const {
  bool lacks_weights = false;
  std::set<std::filesystem::path> targets;  // Files of the same bytes are one download.
  model->missing = 0;
  for (const RepositoryFile* file : selection.files) {
    const DownloadFile download = ToDownload(resolved, *file);
    if (resolved.cache.HasFile(resolved.listing.commit, *file) || IsComplete(download)) continue;
    lacks_weights = lacks_weights || IsWeights(file->name);
    if (!targets.insert(download.target).second) continue;
    model->missing += file->bytes - std::min(file->bytes, PartialFile::DiskBytes(download.target));
  }
  if (!lacks_weights || settings_.offline) return {};
  const auto folder = HeadersOf(resolved, selection, events, model);
  if (!folder.has_value()) {
    // The download asks for the same bytes, verifies them, and has more patience.
    if (events.on_note)
      events.on_note(fmt::format("not planned before the download: {}", folder.error().ToString()));
    return {};
  }
  LocalModel headers = *model;
  headers.path = selection.model.empty() ? *folder : *folder / selection.model;
  const Status status = inspect(headers);
  // Headers are not verified, so the next try looks at fresh ones, unless the machine is the
  // reason.
  const bool may_be_damaged = !status.ok() && status.code() != Code::kResourceExhausted;
  if (may_be_damaged && *folder != resolved.cache.SnapshotFolder(resolved.listing.commit))
    (void)RemoveAtOnce(*folder);
  return status;
}

/// `vanished` becomes the commit whose files are no longer what was listed.
Result<LocalModel> Hub::PullRepository(const RepositoryName& name, const DownloadEvents& events,
                                       const InspectFn& inspect, std::string* vanished) const {
  TESSERA_ASSIGN_OR_RETURN(Chosen chosen, Choose(name, events));
  const Resolved& resolved = *chosen.resolved;
  const Selection& selection = chosen.selection;
  LocalModel& model = chosen.model;
  const Listing& listing = resolved.listing;
  const RepositoryCache& cache = resolved.cache;
  Status refusal;
  const auto get = [&]() -> Status {
    if (!inspect) return Get(resolved, selection.files, events, &model);
    std::vector<const RepositoryFile*> small;
    for (const RepositoryFile* file : selection.files)
      if (!IsWeights(file->name)) small.push_back(file);
    const DownloadEvents quiet{{}, events.on_note};  // Bars are for the download that follows.
    TESSERA_RETURN_IF_ERROR(Get(resolved, small, quiet, &model));
    refusal = Inspect(resolved, selection, quiet, inspect, &model);
    return refusal.ok() ? Get(resolved, selection.files, events, &model) : Status();
  };
  Status status = get();
  if (!refusal.ok()) return Fail(std::move(refusal));
  if (!status.ok()) {
    const Code sign = name.place == Place::kHub ? Code::kNotFound : Code::kFailedPrecondition;
    if (status.code() == sign && resolved.is_online && !IsCommit(resolved.revision))
      *vanished = listing.commit;
    return Fail(std::move(status));
  }
  // All at the end: a snapshot of ours is as good as complete when it appears.
  for (const RepositoryFile* file : selection.files)
    if (!cache.HasFile(listing.commit, *file))
      TESSERA_RETURN_IF_ERROR(cache.Link(listing.commit, *file));
  if (resolved.is_online) {
    status = cache.WriteRef(resolved.revision, listing.commit);
    if (!status.ok() && model.fetched > 0) return Fail(std::move(status));
  }
  const std::filesystem::path folder = cache.SnapshotFolder(listing.commit);
  model.path = selection.model.empty() ? folder : folder / selection.model;
  return std::move(model);
}

Result<LocalModel> Hub::PullHeaders(const RepositoryName& name,
                                    const DownloadEvents& events) const {
  TESSERA_ASSIGN_OR_RETURN(Chosen chosen, Choose(name, events));
  const Selection& selection = chosen.selection;
  LocalModel& model = chosen.model;
  TESSERA_ASSIGN_OR_RETURN(const std::filesystem::path folder,
                           HeadersOf(*chosen.resolved, selection, events, &model));
  model.path = selection.model.empty() ? folder : folder / selection.model;
  return std::move(model);
}

/// The snapshot where it is complete.
Result<std::filesystem::path> Hub::HeadersOf(const Resolved& resolved, const Selection& selection,
                                             const DownloadEvents& events,
                                             LocalModel* model) const {
  const Listing& listing = resolved.listing;
  const RepositoryCache& cache = resolved.cache;
  if (HasAll(cache.SnapshotFolder(listing.commit), selection))
    return cache.SnapshotFolder(listing.commit);
  std::filesystem::path folder = cache.HeadersFolder(listing.commit, selection.model);
  if (HasAll(folder, selection)) return folder;
  if (settings_.offline)
    return Fail(NotCached(listing.repository, resolved.revision, settings_.cache, ""));
  // It may have links to blobs that were removed since.
  if (IsPresent(folder)) TESSERA_RETURN_IF_ERROR(RemoveAtOnce(folder));
  TESSERA_RETURN_IF_ERROR(MakeHeaders(resolved, selection, folder, events, model));
  return folder;
}

Status Hub::MakeHeaders(const Resolved& resolved, const Selection& selection,
                        const std::filesystem::path& folder, const DownloadEvents& events,
                        LocalModel* model) const {
  std::vector<const RepositoryFile*> small;
  std::vector<DownloadFile> weights;
  for (const RepositoryFile* file : selection.files) {
    const bool is_weights = IsWeights(file->name) && !IsComplete(ToDownload(resolved, *file));
    if (is_weights)
      weights.push_back(ToDownload(resolved, *file));
    else
      small.push_back(file);
  }
  TESSERA_RETURN_IF_ERROR(Get(resolved, small, events, model));
  std::error_code error;
  std::filesystem::create_directories(folder.parent_path(), error);
  if (error) return ErrnoStatus(error.value(), "making", folder.parent_path());
  TESSERA_ASSIGN_OR_RETURN(Draft draft, Draft::Folder(folder));
  for (const RepositoryFile* file : small)
    TESSERA_RETURN_IF_ERROR(resolved.cache.LinkInto(draft.path(), *file));
  TESSERA_ASSIGN_OR_RETURN(const uint64_t fetched,
                           FetchHeaders(weights, draft.path(), settings_, http_));
  model->fetched += fetched;
  // Over the same of another process that came meanwhile: that is as good.
  return draft.MoveTo(folder);
}

Result<LocalModel> Hub::Pull(const RepositoryName& name, const DownloadEvents& events,
                             const InspectFn& inspect) const {
  if (name.place == Place::kPath)
    return Fail(InvalidArgument(fmt::format("{} is a path: there is nothing to pull", name.path)));
  // A branch may move and leave its files behind, and a file without announced hash may be
  // replaced: then what there is now is wanted.
  std::string last;
  for (int tries = 0;; ++tries) {
    std::string vanished;
    auto model = PullRepository(name, events, inspect, &vanished);
    if (model.has_value() || vanished.empty() || tries == kMaxChanges) return model;
    // The hub still lists what it does not give.
    if (name.place == Place::kHub && vanished == last) return model;
    last = std::move(vanished);
    if (events.on_note) events.on_note(model.error().ToString() + "; beginning anew");
  }
}

}  // namespace tessera::hub
