// SPDX-License-Identifier: Apache-2.0
#include "hub/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/file.h"

namespace tessera::hub {

Result<std::optional<FileLock>> FileLock::TryLock(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) return Fail(ErrnoStatus(error.value(), "making", path.parent_path()));
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return Fail(ErrnoStatus(errno, "opening", path));
  FileLock lock(fd);
  int result;
  do {
    result = ::flock(fd, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return std::optional<FileLock>(std::move(lock));
  if (errno == EWOULDBLOCK) return std::optional<FileLock>();
  return Fail(ErrnoStatus(errno, "locking", path));
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace tessera::hub
