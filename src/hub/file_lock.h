// SPDX-License-Identifier: Apache-2.0
//
// FileLock: an exclusive flock(2) on a file that is made for it, as huggingface_hub's `filelock`
// takes it, so that both tools share a download. Ends with the object or its process.
#pragma once

#include <filesystem>
#include <optional>
#include <utility>

#include "base/status.h"

namespace tessera::hub {

class FileLock {
 public:
  /// Nothing when somebody else holds it. Makes the folders above. Errors as ErrnoStatus.
  static Result<std::optional<FileLock>> TryLock(const std::filesystem::path& path);
  FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace tessera::hub
