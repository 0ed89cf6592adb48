// SPDX-License-Identifier: Apache-2.0
#include "bundle/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "base/hash.h"
#include "bundle/limits.h"

namespace tessera::bundle {
namespace {

namespace fs = std::filesystem;

/// A cache that may not be written.
Status Placed(Status status) {
  if (status.code() != Code::kPermissionDenied) return status;
  return PermissionDenied(status.message() + ": name a folder of yours with --cache-dir");
}

Status MakeFolders(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return Placed(ErrnoStatus(error.value(), "making the folder", path));
  return {};
}

std::string SourcesText(const std::vector<FileRecord>& sources) {
  std::string text;
  for (const FileRecord& source : sources) text += source.sha256 + "\n";
  return text;
}

/// What was written to it, by whatever descriptor, is on the disk; an error of writing it is
/// reported here at the latest.
Status SyncFile(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "opening", path);
  const int error = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  if (error != 0) return ErrnoStatus(error, "syncing", path);
  return {};
}

}  // namespace

std::string FolderSafeName(std::string_view model) {
  std::string name;
  for (const char c : model) {
    if (c == '/') {
      name += "--";
    } else {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
      name += plain ? c : '_';
    }
  }
  if (name.empty() || name.front() == '.') name.insert(0, "_");
  return name.substr(0, 100);
}

namespace {

std::string KeyOf(const BundleId& id, const std::map<std::string, std::string>& options,
                  const std::vector<FileRecord>& sources) {
  // One field a line. Values with line ends are quoted by length, so no two ids share a text.
  std::string text =
      fmt::format("format {}\ntarget {}\ntp {}\nquantization {}\n", kBundleFormatVersion, id.target,
                  id.tensor_parallel, id.quantization);
  for (const auto& [name, value] : options)
    text += fmt::format("option {}:{} {}:{}\n", name.size(), name, value.size(), value);
  text += SourcesText(sources);
  return Sha256Hex(AsBytes(text)).substr(0, 16);
}

}  // namespace

std::map<std::string, std::string> BundleId::AllOptions() const {
  std::map<std::string, std::string> all = options;
  all.insert(program_options.begin(), program_options.end());
  return all;
}

std::vector<FileRecord> BundleId::AllSources() const {
  std::vector<FileRecord> all = sources;
  all.insert(all.end(), program_sources.begin(), program_sources.end());
  return all;
}

std::string BundleId::Key() const {
  return KeyOf(*this, AllOptions(), AllSources());
}

std::string BundleId::ExportKey() const {
  return KeyOf(*this, options, sources);
}

std::string BundleId::FolderName() const {
  return fmt::format("{}-tp{}-{}-{}", FolderSafeName(target), tensor_parallel,
                     FolderSafeName(quantization), Key());
}

namespace {

/// Whether a bundle of those sources was made of all of these, in this order.
bool HasSources(const std::vector<FileRecord>& all, const std::vector<FileRecord>& wanted) {
  size_t found = 0;
  for (const FileRecord& source : all)
    if (found < wanted.size() && source.sha256 == wanted[found].sha256) ++found;
  return found == wanted.size();
}

}  // namespace

std::string ExplainDifference(const Manifest& existing, const BundleId& wanted, Stages stages) {
  std::string text;
  const auto note = [&](std::string_view what, std::string_view from, std::string_view to) {
    if (from != to)
      text += fmt::format("{}{} changed {} -> {}", text.empty() ? "" : ", ", what,
                          from.empty() ? "(none)" : from, to.empty() ? "(none)" : to);
  };
  note("format version", fmt::to_string(existing.format_version),
       fmt::to_string(kBundleFormatVersion));
  note("target", existing.target, wanted.target);
  note("tensor parallelism", fmt::to_string(existing.tensor_parallel),
       fmt::to_string(wanted.tensor_parallel));
  note("quantization", existing.quantization, wanted.quantization);
  const auto value = [](const std::map<std::string, std::string>& options, const std::string& key) {
    const auto found = options.find(key);
    return found == options.end() ? std::string() : found->second;
  };
  const auto options = wanted.AllOptions();
  // How something is quantised says nothing beside the news that something else is.
  const bool same_quantization = existing.quantization == wanted.quantization;
  const bool all = stages == Stages::kAll;
  const auto tells = [&](const std::string& key) {
    return (same_quantization || key != kQuantiserOption) &&
           (all || !wanted.program_options.contains(key));
  };
  for (const auto& [key, from] : existing.options)
    if (tells(key)) note(key, from, value(options, key));
  for (const auto& [key, to] : options)
    if (tells(key) && !existing.options.contains(key)) note(key, "", to);
  const bool same_sources =
      all ? SourcesText(existing.source.files) == SourcesText(wanted.AllSources())
          : HasSources(existing.source.files, wanted.sources);
  if (!same_sources) text += fmt::format("{}source files changed", text.empty() ? "" : ", ");
  return text;
}

BundleLock::BundleLock(BundleLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), folder_(std::move(other.folder_)) {}

BundleLock::~BundleLock() {
  // Closing the description releases the lock. The file stays: removing it would let a third
  // process lock a new file while a second one waits on the removed one.
  if (fd_ >= 0) ::close(fd_);
}

Status BundleDraft::AddFile(std::string_view name, std::string_view contents) {
  TESSERA_ASSIGN_OR_RETURN(auto writer, FileWriter::Create(folder() / name));
  TESSERA_RETURN_IF_ERROR(writer->Append(AsBytes(contents)));
  Record({std::string(name), contents.size(), Sha256Hex(AsBytes(contents))});
  return {};
}

const FileRecord* BundleDraft::FindFile(std::string_view name) const {
  const auto found = std::find_if(files_.begin(), files_.end(),
                                  [&](const FileRecord& file) { return file.name == name; });
  return found == files_.end() ? nullptr : &*found;
}

void BundleDraft::Record(FileRecord file) {
  for (const FileRecord& other : files_) TESSERA_CHECK(other.name != file.name);
  files_.push_back(std::move(file));
}

Status BundleDraft::Link(const fs::path& from, const FileRecord& file) {
  const fs::path to = folder() / file.name;
  std::error_code error;
  fs::create_hard_link(from / file.name, to, error);
  // Another file system, or one without links, or with no more for this file.
  if (error) fs::copy_file(from / file.name, to, error);
  if (error) return ErrnoStatus(error.value(), "copying to", to);
  Record(file);
  return {};
}

Status BundleDraft::Sync() {
  for (; synced_ < files_.size(); ++synced_)
    TESSERA_RETURN_IF_ERROR(SyncFile(folder() / files_[synced_].name));
  return {};
}

Result<fs::path> BundleDraft::Publish(Manifest manifest) && {
  TESSERA_CHECK(!folder().empty());
  TESSERA_RETURN_IF_ERROR(Sync());
  std::sort(files_.begin(), files_.end(),
            [](const FileRecord& a, const FileRecord& b) { return a.name < b.name; });
  manifest.files = std::move(files_);
  const std::string text = WriteManifest(manifest);
  // Never a bundle that nobody can open: a name that is no UTF-8 text, a number beyond its limit.
  const Result<Manifest> read_back = ReadManifest(text, kManifestFile);
  if (!read_back.has_value()) return Fail(read_back.error().WithContext("writing a bundle"));
  TESSERA_RETURN_IF_ERROR(WriteFileAtomic(folder() / kManifestFile, text));
  TESSERA_RETURN_IF_ERROR(SyncDirectory(folder()));
  TESSERA_RETURN_IF_ERROR(draft_.MoveTo(target_));
  TESSERA_RETURN_IF_ERROR(SyncDirectory(target_.parent_path()));
  return target_;
}

fs::path Store::FolderOf(const BundleId& id) const {
  return cache_ / "bundles" / FolderSafeName(id.model) / id.FolderName();
}

Result<BundleLock> Store::Lock(const BundleId& id, const std::function<void()>& on_wait) const {
  const fs::path folder = FolderOf(id);
  TESSERA_RETURN_IF_ERROR(MakeFolders(folder.parent_path()));
  const fs::path path = folder.parent_path() / fmt::format(".{}.lock", folder.filename().string());
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return Fail(Placed(ErrnoStatus(errno, "opening the lock", path)));
  BundleLock lock(fd, folder);
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return Fail(ErrnoStatus(errno, "locking", path));
  if (on_wait) on_wait();
  int rc;
  do {
    rc = ::flock(fd, LOCK_EX);
  } while (rc != 0 && errno == EINTR);
  if (rc != 0) return Fail(ErrnoStatus(errno, "locking", path));
  return lock;
}

Result<std::optional<fs::path>> Store::Find(const BundleId& id) const {
  const fs::path folder = FolderOf(id);
  std::error_code error;
  if (!fs::exists(folder / kManifestFile, error)) return std::nullopt;
  Result<Manifest> manifest = LoadManifest(folder);
  if (!manifest.has_value())
    return Fail(DataLoss(fmt::format("bundle is damaged: {}", manifest.error().ToString())));
  TESSERA_RETURN_IF_ERROR(VerifyFiles(folder, *manifest, Check::kSizesAndSmallFiles));
  return folder;
}

std::optional<Store::Exported> Store::FindExport(const BundleId& id) const {
  const std::string wanted = id.ExportKey();
  std::error_code error;
  for (fs::directory_iterator it(FolderOf(id).parent_path(), error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().filename().string().starts_with('.')) continue;
    Result<Manifest> manifest = LoadManifest(it->path());
    if (!manifest.has_value() || manifest->export_key != wanted) continue;
    if (!VerifyFiles(it->path(), *manifest, Check::kSizesAndSmallFiles).ok()) continue;
    return Exported{it->path(), *std::move(manifest)};
  }
  return std::nullopt;
}

std::optional<Manifest> Store::NewestSibling(const BundleId& id) const {
  const fs::path own = FolderOf(id);
  std::optional<Manifest> newest;
  fs::file_time_type newest_time;
  std::error_code error;
  for (fs::directory_iterator it(own.parent_path(), error), end; !error && it != end;
       it.increment(error)) {
    const fs::path path = it->path() / kManifestFile;
    if (it->path() == own || it->path().filename().string().starts_with('.')) continue;
    std::error_code time_error;
    const auto time = fs::last_write_time(path, time_error);
    if (time_error || (newest && time <= newest_time)) continue;
    Result<Manifest> manifest = LoadManifest(it->path());
    if (!manifest.has_value()) continue;
    newest = *std::move(manifest);
    newest_time = time;
  }
  return newest;
}

Result<BundleDraft> Store::NewDraft(const BundleLock& lock) const {
  TESSERA_CHECK(lock.fd_ >= 0);
  TESSERA_ASSIGN_OR_RETURN(Draft draft, Draft::Folder(lock.folder_));
  return BundleDraft(std::move(draft), lock.folder_);
}

}  // namespace tessera::bundle
