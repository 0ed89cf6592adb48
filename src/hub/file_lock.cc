// SPDX-License-Identifier: Apache-2.0
#include "hub/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/file.h"

namespace tessera::hub {
namespace {

bool IsTheFileAt(const std::filesystem::path& path, int fd) {
  struct stat held {};
  struct stat named {};
  return ::fstat(fd, &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

}  // namespace

Result<std::optional<FileLock>> FileLock::TryLock(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) return Fail(ErrnoStatus(error.value(), "making", path.parent_path()));
  for (;;) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return Fail(ErrnoStatus(errno, "opening", path));
    FileLock lock(fd);
    int result;
    do {
      result = ::flock(fd, LOCK_EX | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    if (result != 0 && errno == EWOULDBLOCK) return std::optional<FileLock>();
    if (result != 0) return Fail(ErrnoStatus(errno, "locking", path));
    // Other tools remove their lock files: a lock on a removed one keeps nobody out.
    if (IsTheFileAt(path, fd)) return std::optional<FileLock>(std::move(lock));
  }
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace tessera::hub
