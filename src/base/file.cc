// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/draft.h"

namespace tessera {
namespace {

/// Closes on scope exit.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

int64_t Nanoseconds(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

/// Of a regular file; anything else is refused.
Result<FileIdentity> IdentityOf(int fd, const std::filesystem::path& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return Fail(ErrnoStatus(errno, "reading the size of", path));
  if (S_ISDIR(info.st_mode))
    return Fail(InvalidArgument(fmt::format("{} is a folder, expected a file", path.string())));
  if (!S_ISREG(info.st_mode))
    return Fail(InvalidArgument(fmt::format("{} is not a regular file", path.string())));
  return FileIdentity{info.st_dev, info.st_ino, static_cast<uint64_t>(info.st_size),
                      Nanoseconds(info.st_mtim), Nanoseconds(info.st_ctim)};
}

/// A FIFO or device of a repository must be refused by SizeOf(), not waited for: O_NONBLOCK, which
/// changes nothing for regular files.
constexpr int kReadOnly = O_RDONLY | O_NONBLOCK;

int OpenRetrying(const std::filesystem::path& path, int flags, mode_t mode = 0) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

Status WriteAll(int fd, ByteSpan bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, "writing", path);
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

}  // namespace

Status ErrnoStatus(int error, std::string_view what, const std::filesystem::path& path) {
  std::string text = fmt::format("{} {}: {}", what, path.string(), std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return NotFound(std::move(text));
    case EACCES:
    case EPERM:
    case EROFS:
      return PermissionDenied(std::move(text));
    case ENOSPC:
    case EDQUOT:
      return ResourceExhausted(std::move(text) + "; free some space and try again");
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return ResourceExhausted(std::move(text));
    case EEXIST:
      return AlreadyExists(std::move(text));
    case ELOOP:
      return InvalidArgument(std::move(text) + "; put the file itself there instead of the link");
    default:
      return Unavailable(std::move(text));
  }
}

bool IsPresent(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::symlink_status(path, error).type() !=
         std::filesystem::file_type::not_found;
}

Result<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::filesystem::path& path) {
  const Descriptor fd(OpenRetrying(path, kReadOnly));
  if (fd.get() < 0) return Fail(ErrnoStatus(errno, "opening", path));
  TESSERA_ASSIGN_OR_RETURN(const FileIdentity identity, IdentityOf(fd.get(), path));
  const uint64_t size = identity.bytes;
  ByteSpan bytes;
  if (size > 0) {
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
    if (address == MAP_FAILED) return Fail(ErrnoStatus(errno, "mapping", path));
    bytes = {static_cast<const std::byte*>(address), size};
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(path, bytes, identity));
}

MappedFile::~MappedFile() {
  guard_.reset();
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Status MappedFile::CheckIntact() const {
  if (!guard_->damaged()) return {};
  return DataLoss(
      fmt::format("{} shrank while it was in use (it had {} bytes): restore it, or "
                  "compile the model again, and start again",
                  path_.string(), bytes_.size()));
}

void MappedFile::WillNeed(uint64_t offset, uint64_t size) const {
  Advise(offset, size, MADV_WILLNEED);
}

void MappedFile::DoneWith(uint64_t offset, uint64_t size) const {
  // A page fault maps the whole folio around it, which the page cache makes up to this large: so
  // what lies beside the range too, even what was done with before. Left alone, a tenth of a file
  // that is read in pieces would stay resident.
  constexpr uint64_t kLargestFolio = 2 << 20;
  const uint64_t begin = offset / kLargestFolio * kLargestFolio;
  const uint64_t end = std::min<uint64_t>(bytes_.size(), offset + size);
  // Of a shared mapping: no contents are lost.
  if (end > begin)
    Advise(begin, (end + kLargestFolio - 1) / kLargestFolio * kLargestFolio - begin, MADV_DONTNEED);
}

void MappedFile::Advise(uint64_t offset, uint64_t size, int advice) const {
  if (offset >= bytes_.size()) return;
  constexpr uint64_t kPage = 4096;
  const uint64_t begin = offset / kPage * kPage;
  const uint64_t end = offset + std::min<uint64_t>(bytes_.size() - offset, size);
  // A hint only: failure changes nothing but speed and memory.
  (void)::madvise(const_cast<std::byte*>(bytes_.data()) + begin, end - begin, advice);
}

Result<std::string> ReadFile(const std::filesystem::path& path, uint64_t max_bytes) {
  const Descriptor fd(OpenRetrying(path, kReadOnly));
  if (fd.get() < 0) return Fail(ErrnoStatus(errno, "opening", path));
  TESSERA_ASSIGN_OR_RETURN(const FileIdentity identity, IdentityOf(fd.get(), path));
  const uint64_t size = identity.bytes;
  if (size > max_bytes)
    return Fail(ResourceExhausted(
        fmt::format("{} has {} bytes, more than the limit of {}", path.string(), size, max_bytes)));
  std::string text(size, '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + done, text.size() - done);
    if (got < 0) {
      if (errno == EINTR) continue;
      return Fail(ErrnoStatus(errno, "reading", path));
    }
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  return text;
}

Result<std::unique_ptr<FileWriter>> FileWriter::Create(const std::filesystem::path& path) {
  const int fd = OpenRetrying(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) return Fail(ErrnoStatus(errno, "creating", path));
  return std::unique_ptr<FileWriter>(new FileWriter(path, fd));
}

FileWriter::~FileWriter() {
  if (fd_ >= 0) ::close(fd_);
}

Status FileWriter::Append(ByteSpan bytes) {
  TESSERA_CHECK(fd_ >= 0);
  TESSERA_RETURN_IF_ERROR(WriteAll(fd_, bytes, path_));
  size_ += bytes.size();
  return {};
}

Status FileWriter::PadTo(uint64_t offset) {
  TESSERA_CHECK(offset >= size_);
  static constexpr std::array<std::byte, 4096> kZeros{};
  while (size_ < offset) {
    const uint64_t piece = std::min<uint64_t>(offset - size_, kZeros.size());
    TESSERA_RETURN_IF_ERROR(Append(ByteSpan(kZeros).first(piece)));
  }
  return {};
}

Status FileWriter::WriteAt(uint64_t offset, ByteSpan bytes) const {
  TESSERA_CHECK(fd_ >= 0);
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, "writing", path_);
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return {};
}

Status FileWriter::Resize(uint64_t size) const {
  TESSERA_CHECK(fd_ >= 0);
  while (::ftruncate(fd_, static_cast<off_t>(size)) != 0) {
    if (errno != EINTR) return ErrnoStatus(errno, "setting the size of", path_);
  }
  return {};
}

Status FileWriter::Finish() {
  TESSERA_CHECK(fd_ >= 0);
  const int fd = std::exchange(fd_, -1);
  const Descriptor closer(fd);
  if (::fsync(fd) != 0) return ErrnoStatus(errno, "syncing", path_);
  return {};
}

Status WriteFileAtomic(const std::filesystem::path& path, std::string_view bytes,
                       const std::filesystem::path& drafts) {
  TESSERA_ASSIGN_OR_RETURN(Draft draft,
                           Draft::File(drafts.empty() ? path : drafts / path.filename()));
  TESSERA_ASSIGN_OR_RETURN(const auto writer, FileWriter::Create(draft.path()));
  TESSERA_RETURN_IF_ERROR(writer->Append(AsBytes(bytes)));
  TESSERA_RETURN_IF_ERROR(writer->Finish());
  TESSERA_RETURN_IF_ERROR(draft.MoveTo(path));
  return SyncDirectory(path.has_parent_path() ? path.parent_path() : ".");
}

Result<uint64_t> FreeDiskBytes(const std::filesystem::path& folder) {
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0)
    return Fail(ErrnoStatus(errno, "reading the free space of", folder));
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

Status SyncDirectory(const std::filesystem::path& path) {
  const Descriptor fd(OpenRetrying(path, O_RDONLY | O_DIRECTORY));
  if (fd.get() < 0) return ErrnoStatus(errno, "opening", path);
  // Some file systems refuse fsync of folders; the rename is then as durable as they make it.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return ErrnoStatus(errno, "syncing", path);
  return {};
}

}  // namespace tessera
