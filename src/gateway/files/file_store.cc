// SPDX-License-Identifier: Apache-2.0
#include "gateway/files/file_store.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <set>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"

namespace tessera::gateway {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolder = "files", kIncomingFolder = "incoming";

std::unexpected<ApiError> Refuse(int status, std::string text) {
  return std::unexpected(ApiError{.status = status, .text = std::move(text)});
}

/// Whatever kept bytes from the disk: the caller can do nothing but try later.
std::unexpected<ApiError> NotStored(const Status& status) {
  log::error("gateway: a file could not be stored: {}", status.ToString());
  return Refuse(507,
                "The file could not be stored, and nothing of it was kept: the disk is full "
                "or does not take it");
}

Status MakePrivateFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return ErrnoStatus(error.value(), "making", folder);
  if (chmod(folder.c_str(), S_IRWXU) != 0) return ErrnoStatus(errno, "making private", folder);
  return {};
}

Status Rename(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) return ErrnoStatus(error.value(), "renaming", from);
  return SyncDirectory(to.parent_path());
}

/// What cannot be removed now is at the next start.
void RemoveLater(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) log::warn("gateway: removing {}: {}", path.string(), error.message());
}

}  // namespace

// --- Incoming ------------------------------------------------------------------------------

FileStore::Incoming::~Incoming() {
  if (is_published_) return;
  writer_.reset();
  RemoveLater(store_.IncomingPath(id_));
  store_.GiveBack(owner_, reserved_);
}

ApiResult<void> FileStore::Incoming::Append(std::string_view bytes) {
  if (const auto room = store_.Reserve(owner_, reserved_, bytes.size()); !room.has_value())
    return room;
  reserved_ += bytes.size();
  hash_.Update(AsBytes(bytes));
  if (const Status written = writer_->Append(AsBytes(bytes)); !written.ok())
    return NotStored(written);
  return {};
}

ApiResult<FileRecord> FileStore::Incoming::Publish(std::string filename, std::string purpose) {
  if (const Status synced = writer_->Finish(); !synced.ok()) return NotStored(synced);
  FileRecord record{.id = id_,
                    .owner = owner_,
                    .filename = std::move(filename),
                    .bytes = static_cast<int64_t>(reserved_),
                    .sha256 = hash_.FinishHex(),
                    .created_at = Clock::Real().UnixSeconds(),
                    .purpose = std::move(purpose)};
  const fs::path path = store_.PathOf(record);
  Status done = Rename(store_.IncomingPath(id_), path);
  if (done.ok()) done = store_.store_.InsertFile(record);
  if (!done.ok()) {
    RemoveLater(path);
    return NotStored(done);
  }
  is_published_ = true;
  return record;
}

// --- FileStore -----------------------------------------------------------------------------

FileStore::FileStore(Store* store, const FileLimits& limits)
    : store_(*store), limits_(limits), folder_(store->folder() / kFolder) {}

fs::path FileStore::IncomingPath(const std::string& id) const {
  return folder_ / kIncomingFolder / id;
}

Result<std::unique_ptr<FileStore>> FileStore::Open(Store* store, const FileLimits& limits) {
  std::unique_ptr<FileStore> made(new FileStore(store, limits));
  TESSERA_RETURN_IF_ERROR(made->Recover());
  return made;
}

Status FileStore::Recover() {
  TESSERA_RETURN_IF_ERROR(MakePrivateFolder(folder_));
  RemoveLater(folder_ / kIncomingFolder);
  TESSERA_RETURN_IF_ERROR(MakePrivateFolder(folder_ / kIncomingFolder));
  TESSERA_ASSIGN_OR_RETURN(const std::vector<FileRecord> records, store_.LoadFiles());
  std::set<std::string> known{std::string(kIncomingFolder)};
  for (const FileRecord& record : records) {
    known.insert(record.id);
    Usage& usage = usage_[record.owner];
    usage.bytes += static_cast<uint64_t>(record.bytes);
    ++usage.files;
    if (!IsPresent(PathOf(record)))
      log::error("gateway: the bytes of {} are gone from {}", record.id, folder_.string());
  }
  std::error_code error;
  std::vector<fs::path> unknown;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error))
    if (!known.contains(entry->path().filename().string())) unknown.push_back(entry->path());
  if (error) return ErrnoStatus(error.value(), "reading", folder_);
  for (const fs::path& path : unknown) RemoveLater(path);
  return {};
}

ApiResult<void> FileStore::Reserve(const std::string& owner, uint64_t before, uint64_t more) {
  if (more > limits_.file_bytes_max || before > limits_.file_bytes_max - more)
    return Refuse(413, fmt::format("file: larger than the {} bytes that one file may have",
                                   limits_.file_bytes_max));
  const std::lock_guard lock(mutex_);
  Usage& usage = usage_[owner];
  if (more > limits_.owner_bytes_max || usage.bytes > limits_.owner_bytes_max - more)
    return Refuse(413, fmt::format("file: your files would have more than {} bytes; delete some",
                                   limits_.owner_bytes_max));
  usage.bytes += more;
  return {};
}

void FileStore::GiveBack(const std::string& owner, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = usage_.find(owner);
  if (found == usage_.end()) return;
  found->second.bytes -= bytes;
  if (--found->second.files == 0) usage_.erase(found);
}

ApiResult<std::unique_ptr<FileStore::Incoming>> FileStore::Begin(const std::string& owner,
                                                                 std::string id) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = usage_.find(owner);
    if (found != usage_.end() && found->second.files >= limits_.owner_files_max)
      return Refuse(413, fmt::format("file: you have {} files, which is the most; delete some",
                                     limits_.owner_files_max));
    ++usage_[owner].files;
  }
  // From here on its destructor gives back what was counted.
  std::unique_ptr<Incoming> incoming(
      new Incoming(this, owner, id.empty() ? NewFileId() : std::move(id)));
  auto writer = FileWriter::Create(IncomingPath(incoming->id_));
  if (!writer.has_value()) return NotStored(writer.error());
  incoming->writer_ = *std::move(writer);
  return incoming;
}

Result<std::optional<FileRecord>> FileStore::Find(std::string_view owner,
                                                  std::string_view id) const {
  return store_.FindFile(owner, id);
}

Result<std::vector<FileRecord>> FileStore::List(std::string_view owner) const {
  return store_.ListFiles(owner);
}

Result<bool> FileStore::Remove(std::string_view owner, std::string_view id) {
  TESSERA_ASSIGN_OR_RETURN(const auto record, store_.FindFile(owner, id));
  if (!record.has_value()) return false;
  TESSERA_ASSIGN_OR_RETURN(const bool is_removed, store_.RemoveFile(owner, id));
  if (!is_removed) return false;  // Somebody else was faster.
  RemoveLater(PathOf(*record));
  GiveBack(record->owner, static_cast<uint64_t>(record->bytes));
  return true;
}

}  // namespace tessera::gateway
