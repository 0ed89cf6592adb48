// SPDX-License-Identifier: Apache-2.0
//
// Files: read-only shared mappings, whole-file reads under a limit, and writes that are complete
// or absent. All errors name the path and say what the system said.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/mapping_guard.h"
#include "base/status.h"

namespace tessera {

/// Which bytes a file had: as long as none of these changes, neither do its contents. The change
/// time moves with every write, also when the modification time is set back.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t bytes = 0;
  int64_t modified_ns = 0;  // Since 1970, UTC.
  int64_t changed_ns = 0;

  bool operator==(const FileIdentity&) const = default;
};

/// A read-only MAP_SHARED mapping of a whole file; the bytes are valid as long as the object, from
/// any thread. An empty file maps to an empty span. Writers of this tree never truncate a file,
/// they replace it by rename. If somebody else does while it is mapped, touching the lost pages
/// raises SIGBUS; under InstallMappingGuard() they read as zeros, and CheckIntact() says so
/// afterwards.
class MappedFile {
 public:
  /// kNotFound, kPermissionDenied, kInvalidArgument (a folder, FIFO or device), kUnavailable (other
  /// errno).
  static Result<std::shared_ptr<const MappedFile>> Open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  ByteSpan bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }
  /// As of opening.
  const FileIdentity& identity() const { return identity_; }
  /// kDataLoss when pages of the file were lost: what was computed from it since is worthless.
  Status CheckIntact() const;
  /// Hints that [offset, offset+size) will be read soon, in order.
  void WillNeed(uint64_t offset, uint64_t size) const;
  /// [offset, offset+size) has been read and need not stay in this process's resident memory; the
  /// system's page cache keeps what it likes. Reading it again is allowed, from any thread.
  void DoneWith(uint64_t offset, uint64_t size) const;

 private:
  void Advise(uint64_t offset, uint64_t size, int advice) const;
  MappedFile(std::filesystem::path path, ByteSpan bytes, const FileIdentity& identity)
      : path_(std::move(path)),
        bytes_(bytes),
        identity_(identity),
        guard_(std::in_place, bytes.data(), bytes.size()) {}
  std::filesystem::path path_;
  ByteSpan bytes_;
  FileIdentity identity_;
  std::optional<GuardedMapping> guard_;  // Ends before the mapping does.
};

/// Whether the folder has an entry of this name, be it a dangling link or one that may not be
/// examined: what is present and cannot be read is an error, only what is absent may be left out.
bool IsPresent(const std::filesystem::path& path);

/// The whole file as text. kResourceExhausted if it is larger than `max_bytes`.
Result<std::string> ReadFile(const std::filesystem::path& path, uint64_t max_bytes);

/// Writes to a Draft (draft.h), fsyncs, renames: readers see the old bytes or all of the new ones.
/// kResourceExhausted on a full disk (nothing is left behind). The draft is beside `path`, or in
/// `drafts`, a folder of the same file system, where listings of the folder must not show
/// what a killed process left.
Status WriteFileAtomic(const std::filesystem::path& path, std::string_view bytes,
                       const std::filesystem::path& drafts = {});

/// What an ordinary user may still write to the file system of `folder`, which exists.
Result<uint64_t> FreeDiskBytes(const std::filesystem::path& folder);

/// Status of an errno value with the path: "opening x: No such file or directory".
Status ErrnoStatus(int error, std::string_view what, const std::filesystem::path& path);

/// Streams bytes into a new file. Not atomic by itself: publish by renaming a folder or file.
class FileWriter {
 public:
  static Result<std::unique_ptr<FileWriter>> Create(const std::filesystem::path& path);
  ~FileWriter();  // Closes without sync; call Finish() to know that the bytes are safe.
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  Status Append(ByteSpan bytes);
  /// Writes zeros up to `offset`, which must not lie behind the current end.
  Status PadTo(uint64_t offset);
  uint64_t size() const { return size_; }
  /// Writes at an absolute offset, also behind the end: bytes between that are never written read
  /// as zeros. From any thread, several at once; not together with Append() and PadTo(), which
  /// neither see nor move what is written so.
  Status WriteAt(uint64_t offset, ByteSpan bytes) const;
  /// Gives the file exactly `size` bytes.
  Status Resize(uint64_t size) const;
  /// fsync and close. No other call may follow.
  Status Finish();

 private:
  FileWriter(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::filesystem::path path_;
  int fd_;
  uint64_t size_ = 0;
};

/// fsync of a folder, so that a rename inside it survives a crash.
Status SyncDirectory(const std::filesystem::path& path);

}  // namespace tessera
