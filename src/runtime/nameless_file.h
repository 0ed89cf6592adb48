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
  /// For this process, as long as the object.
  std::filesystem::path path() const { return fmt::format("/proc/self/fd/{}", fd_); }

 private:
  int fd_ = -1;  // Where the system refuses: using the path says so.
};

}  // namespace tessera::runtime
