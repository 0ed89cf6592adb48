// SPDX-License-Identifier: Apache-2.0
#include "cli/lease.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "cli/terminal.h"

#include "base/file.h"
#include "base/thread.h"

namespace tessera::cli {
namespace {

constexpr std::chrono::milliseconds kLookEvery{1000};

}  // namespace

Result<bool> IsLeaseHeld(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    if (errno == ENOENT) return false;
    return Fail(ErrnoStatus(errno, "opening", path));
  }
  struct flock lock = {};
  lock.l_type = F_RDLCK;  // What a write lock of somebody else stands against.
  lock.l_whence = SEEK_SET;
  const int code = fcntl(fd, F_OFD_GETLK, &lock);
  const int error = errno;
  close(fd);
  if (code != 0) return Fail(ErrnoStatus(error, "looking at the lock of", path));
  return lock.l_type != F_UNLCK;
}

void AwaitLeaseEnd(const std::filesystem::path& path, Duration grace,
                   std::chrono::milliseconds look_every) {
  TimePoint held = Clock::Real().Now();
  while (Clock::Real().Now() - held < grace) {
    poll(nullptr, 0, static_cast<int>(look_every.count()));  // Locks tell nobody of themselves.
    // What cannot be looked at counts as held: never end by mistake.
    if (IsLeaseHeld(path).value_or(true)) held = Clock::Real().Now();
  }
}

Status EndWithLease(const std::filesystem::path& path) {
  TESSERA_RETURN_IF_ERROR(StatusOf(IsLeaseHeld(path)));
  TESSERA_ASSIGN_OR_RETURN(auto thread, StartThread("lease", [path] {
                             AwaitLeaseEnd(path, kLeaseGrace, kLookEvery);
                             Note("nobody holds {}: ending\n", path.string());
                             kill(getpid(), SIGTERM);
                           }));
  thread.detach();
  return {};
}

}  // namespace tessera::cli
