// SPDX-License-Identifier: Apache-2.0
//
// NamelessFile: what a probe writes and maps. It has no name in any folder, so that nothing is left
// of it when the process is killed.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <vector>

namespace tessera::runtime {

class NamelessFile {
 public:
  /// In the temporary folder; where nothing can be made there, in memory, whose pages are mapped
  /// more slowly than those of files.
  NamelessFile() {
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
    if (!error) fd_ = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd_ < 0) fd_ = ::memfd_create("tessera-probe", MFD_CLOEXEC);
  }
  ~NamelessFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;
  /// Reads all of it once, in order: the page cache then holds it in large folios, as it holds what
  /// was written or read from a disk in order. Pages that come by single faults lie scattered, and
  /// a stream of reads over them can take half as long again.
  void ReadThrough() const {
    std::vector<char> piece(1 << 20);
    (void)::posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
    for (off_t at = 0;;) {
      const ssize_t got = ::pread(fd_, piece.data(), piece.size(), at);
      if (got <= 0) return;  // A hint only.
      at += got;
    }
  }
  /// For this process, as long as the object.
  std::filesystem::path path() const { return fmt::format("/proc/self/fd/{}", fd_); }

 private:
  int fd_ = -1;  // Where the system refuses: using the path says so.
};

}  // namespace tessera::runtime
