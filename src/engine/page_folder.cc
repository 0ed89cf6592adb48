// SPDX-License-Identifier: Apache-2.0
#include "engine/page_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace tessera::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".kv";
constexpr mode_t kFolderMode = 0700;
constexpr mode_t kFileMode = 0600;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  /// What closing says: some file systems tell only then that the disk is full.
  int Close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

Status MakeFolder(const fs::path& path) {
  if (::mkdir(path.c_str(), kFolderMode) == 0 || errno == EEXIST) return {};
  return ErrnoStatus(errno, "making the folder", path);
}

/// Writes both, one after the other.
Status WriteAll(int fd, ByteSpan first, ByteSpan second, const fs::path& path) {
  while (!first.empty() || !second.empty()) {
    const std::array<iovec, 2> parts = {{{const_cast<std::byte*>(first.data()), first.size()},
                                         {const_cast<std::byte*>(second.data()), second.size()}}};
    const ssize_t written = ::writev(fd, parts.data(), static_cast<int>(parts.size()));
    if (written < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, "writing", path);
    }
    const size_t of_first = std::min(static_cast<size_t>(written), first.size());
    first = first.subspan(of_first);
    second = second.subspan(static_cast<size_t>(written) - of_first);
  }
  return {};
}

/// Fills `to`; kDataLoss when the file ends before.
Status ReadAll(int fd, std::span<std::byte> to, const fs::path& path) {
  while (!to.empty()) {
    const ssize_t got = ::read(fd, to.data(), to.size());
    if (got < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, "reading", path);
    }
    if (got == 0) return DataLoss(fmt::format("{} shrank while it was read", path.string()));
    to = to.subspan(static_cast<size_t>(got));
  }
  return {};
}

std::optional<unsigned> HexDigit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  return std::nullopt;
}

/// The hash that a file of ours is named after.
std::optional<PageHash> HashOfName(std::string_view name) {
  PageHash hash;
  if (name.size() != 2 * hash.size() + kSuffix.size() || !name.ends_with(kSuffix))
    return std::nullopt;
  for (size_t i = 0; i < hash.size(); ++i) {
    const auto high = HexDigit(name[2 * i]), low = HexDigit(name[2 * i + 1]);
    if (!high.has_value() || !low.has_value()) return std::nullopt;
    hash[i] = static_cast<std::byte>(*high << 4 | *low);
  }
  return hash;
}

int64_t Nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// The pages of one folder of pages/.
Status ListShard(const fs::path& shard, std::vector<PageFolder::File>* files) {
  std::error_code error;
  for (fs::directory_iterator it(shard, error), end; !error && it != end; it.increment(error)) {
    const auto hash = HashOfName(it->path().filename().string());
    struct stat stat {};
    if (!hash.has_value() || ::lstat(it->path().c_str(), &stat) != 0 || !S_ISREG(stat.st_mode))
      continue;
    files->push_back({*hash, int64_t{stat.st_size}, Nanoseconds(stat.st_mtim)});
  }
  return error ? ErrnoStatus(error.value(), "listing", shard) : Status();
}

}  // namespace

Result<std::unique_ptr<PageFolder>> PageFolder::Open(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);  // The next call says what is wrong.
  TESSERA_RETURN_IF_ERROR(MakeFolder(path));
  const fs::path lock_path = path / "lock";
  const int lock = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kFileMode);
  if (lock < 0) return Fail(ErrnoStatus(errno, "opening the lock", lock_path));
  std::unique_ptr<PageFolder> folder(new PageFolder(path, lock));
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Fail(ErrnoStatus(errno, "locking", lock_path));
    return Fail(Unavailable(fmt::format(
        "{} is in use by another process; each server needs a folder of its own", path.string())));
  }
  TESSERA_RETURN_IF_ERROR(folder->Prepare());
  return folder;
}

PageFolder::~PageFolder() {
  ::close(lock_);
}

Status PageFolder::Prepare() {
  std::error_code error;
  // What a process that died was writing.
  fs::remove_all(path_ / "tmp", error);
  if (error) return ErrnoStatus(error.value(), "removing what was left in", path_ / "tmp");
  TESSERA_RETURN_IF_ERROR(MakeFolder(path_ / "tmp"));
  TESSERA_RETURN_IF_ERROR(MakeFolder(path_ / "pages"));
  // Shown now rather than found out while serving.
  const fs::path probe = path_ / "tmp" / "probe";
  TESSERA_RETURN_IF_ERROR(WriteFileAtomic(probe, "probe"));
  if (::unlink(probe.c_str()) != 0) return ErrnoStatus(errno, "removing", probe);
  return {};
}

fs::path PageFolder::PathOf(const PageHash& hash) const {
  const std::string hex = HexOf(hash);
  return path_ / "pages" / hex.substr(0, 2) / (hex + std::string(kSuffix));
}

Result<std::vector<PageFolder::File>> PageFolder::List() const {
  std::vector<File> files;
  std::error_code error;
  const fs::path pages = path_ / "pages";
  for (fs::directory_iterator it(pages, error), end; !error && it != end; it.increment(error)) {
    std::error_code type_error;
    if (it->path().filename().string().size() != 2 || !it->is_directory(type_error)) continue;
    TESSERA_RETURN_IF_ERROR(ListShard(it->path(), &files));
  }
  if (error) return Fail(ErrnoStatus(error.value(), "listing", pages));
  std::ranges::sort(files, {}, &File::used_ns);
  return files;
}

Status PageFolder::Write(const KvPageName& name, ByteSpan payload) {
  const fs::path temporary = path_ / "tmp" / fmt::format("{}", temporaries_++);
  Status status = [&]() -> Status {
    const KvPageHeader header = EncodeKvPageHeader(name, payload);
    Descriptor file(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kFileMode));
    if (file.get() < 0) return ErrnoStatus(errno, "creating", temporary);
    TESSERA_RETURN_IF_ERROR(WriteAll(file.get(), header, payload, temporary));
    if (file.Close() != 0) return ErrnoStatus(errno, "closing", temporary);
    const fs::path path = PathOf(name.hash);
    TESSERA_RETURN_IF_ERROR(MakeFolder(path.parent_path()));
    if (::rename(temporary.c_str(), path.c_str()) != 0)
      return ErrnoStatus(errno, "renaming to", path);
    return {};
  }();
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

Result<std::shared_ptr<const PageBuffer>> PageFolder::Read(const KvPageName& name) const {
  const fs::path path = PathOf(name.hash);
  // Not a FIFO put there, which would block the open.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) return Fail(ErrnoStatus(errno, "opening", path));
  struct stat stat {};
  if (::fstat(file.get(), &stat) != 0) return Fail(ErrnoStatus(errno, "examining", path));
  const uint64_t expected = kKvPageHeaderBytes + name.payload_bytes;
  // Before anything is allocated by a number from outside.
  if (!S_ISREG(stat.st_mode) || static_cast<uint64_t>(stat.st_size) != expected)
    return Fail(DataLoss(
        fmt::format("{} has {} bytes, expected {}", path.string(), stat.st_size, expected)));
  KvPageHeader header;
  TESSERA_RETURN_IF_ERROR(ReadAll(file.get(), header, path));
  auto buffer = std::make_shared<PageBuffer>(name.payload_bytes);
  TESSERA_RETURN_IF_ERROR(ReadAll(file.get(), {buffer->data.get(), buffer->size}, path));
  const Status sound = CheckKvPage(header, {buffer->data.get(), buffer->size}, name);
  if (!sound.ok()) return Fail(sound.WithContext(path.string()));
  return std::shared_ptr<const PageBuffer>(std::move(buffer));
}

void PageFolder::Touch(const PageHash& hash) const {
  const std::array<timespec, 2> now = {{{0, UTIME_NOW}, {0, UTIME_NOW}}};
  (void)::utimensat(AT_FDCWD, PathOf(hash).c_str(), now.data(), AT_SYMLINK_NOFOLLOW);
}

void PageFolder::Remove(const PageHash& hash) const {
  (void)::unlink(PathOf(hash).c_str());
}

}  // namespace tessera::engine
