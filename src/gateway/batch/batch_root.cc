// SPDX-License-Identifier: Apache-2.0
#include "gateway/batch/batch_root.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file.h"
#include "base/random.h"

namespace tessera::gateway {
namespace {

namespace fs = std::filesystem;

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr size_t kPathBytesMax = 4096;
constexpr size_t kPieceBytes = 256u << 10;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void Reset(int fd) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

Status Errno(int error, std::string_view what, std::string_view path) {
  if (error == ELOOP)
    return PermissionDenied(fmt::format("{}: a link is on the way, and none is followed", path));
  // Of a step that is no folder; O_NOFOLLOW reports a link to one so, too.
  if (error == ENOTDIR)
    return PermissionDenied(fmt::format("{}: a step of it is no folder, or a link", path));
  return ErrnoStatus(error, what, fs::path(path));
}

Status WriteAll(int fd, std::string_view bytes, std::string_view path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Errno(errno, "writing", path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

/// Gathers small pieces into large writes.
class Gathered {
 public:
  Gathered(int fd, std::string_view path) : fd_(fd), path_(path) {}
  Status Add(std::string_view bytes) {
    buffer_ += bytes;
    return buffer_.size() < kPieceBytes ? Status() : Flush();
  }
  Status Flush() {
    const std::string bytes = std::exchange(buffer_, {});
    return WriteAll(fd_, bytes, path_);
  }

 private:
  const int fd_;
  const std::string_view path_;
  std::string buffer_;
};

}  // namespace

Result<BatchRoot> BatchRoot::Make(const fs::path& folder) {
  BatchRoot root;
  if (folder.empty()) return root;
  std::error_code error;
  root.as_given_ = fs::absolute(folder, error).lexically_normal();
  if (!error) root.folder_ = fs::canonical(folder, error);
  if (error) return Fail(ErrnoStatus(error.value(), "opening", folder));
  if (!fs::is_directory(root.folder_, error))
    return Fail(InvalidArgument(folder.string() + " is no folder"));
  return root;
}

Result<std::vector<std::string>> BatchRoot::StepsOf(std::string_view path) const {
  if (folder_.empty())
    return Fail(PermissionDenied(
        "paths of this machine are not offered here; upload a file and name its id"));
  if (path.empty() || path.size() > kPathBytesMax || path.contains('\0'))
    return Fail(InvalidArgument(fmt::format("a path has 1 to {} bytes", kPathBytesMax)));
  const fs::path asked{path};
  fs::path below = asked;
  if (asked.is_absolute()) {
    below.clear();
    for (const fs::path& root : {folder_, as_given_}) {
      const auto [of_root, of_path] =
          std::mismatch(root.begin(), root.end(), asked.begin(), asked.end());
      // A root given with a slash at its end has an empty last step.
      if (of_root != root.end() && !of_root->empty()) continue;
      for (auto step = of_path; step != asked.end(); ++step) below /= *step;
      break;
    }
  }
  std::vector<std::string> steps;
  for (const fs::path& step : below) {
    if (step == "." || step == "..") {
      steps.clear();
      break;
    }
    if (!step.empty()) steps.push_back(step.string());
  }
  if (steps.empty() || path.ends_with('/'))
    return Fail(PermissionDenied(fmt::format("{} names no file below {}", path, folder_.string())));
  return steps;
}

Result<int> BatchRoot::OpenParent(const std::vector<std::string>& steps, bool makes_folders,
                                  std::string_view path) const {
  Descriptor folder(open(folder_.c_str(), kFolderFlags));
  if (folder.get() < 0) return Fail(Errno(errno, "opening", folder_.native()));
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    const char* step = steps[i].c_str();
    if (makes_folders && mkdirat(folder.get(), step, 0755) != 0 && errno != EEXIST)
      return Fail(Errno(errno, "making the folder of", path));
    const int next = openat(folder.get(), step, kFolderFlags);
    if (next < 0) return Fail(Errno(errno, "opening", path));
    folder.Reset(next);
  }
  return folder.Release();
}

Result<std::string> BatchRoot::Read(std::string_view path, uint64_t bytes_max) const {
  TESSERA_ASSIGN_OR_RETURN(const auto steps, StepsOf(path));
  TESSERA_ASSIGN_OR_RETURN(const int parent, OpenParent(steps, /*makes_folders=*/false, path));
  const Descriptor folder(parent);
  // A FIFO must be refused, not waited for.
  const Descriptor file(
      openat(folder.get(), steps.back().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) return Fail(Errno(errno, "opening", path));
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return Fail(Errno(errno, "reading", path));
  if (!S_ISREG(info.st_mode))
    return Fail(InvalidArgument(fmt::format("{} is no regular file", path)));
  std::string bytes;
  while (true) {
    if (bytes.size() > bytes_max)
      return Fail(ResourceExhausted(fmt::format("{} has more than {} bytes", path, bytes_max)));
    const size_t before = bytes.size();
    bytes.resize(before + kPieceBytes);
    const ssize_t got = read(file.get(), bytes.data() + before, kPieceBytes);
    bytes.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return bytes;
    if (got < 0 && errno != EINTR) return Fail(Errno(errno, "reading", path));
  }
}

Status BatchRoot::CheckOutput(std::string_view path) const {
  TESSERA_ASSIGN_OR_RETURN(const auto steps, StepsOf(path));
  TESSERA_ASSIGN_OR_RETURN(const int parent, OpenParent(steps, /*makes_folders=*/true, path));
  const Descriptor folder(parent);
  struct stat info {};
  if (fstatat(folder.get(), steps.back().c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
    if (!S_ISREG(info.st_mode))
      return InvalidArgument(fmt::format("{} is there and is no regular file", path));
  } else if (errno != ENOENT) {
    return Errno(errno, "looking for", path);
  }
  if (faccessat(folder.get(), ".", W_OK | X_OK, AT_EACCESS) != 0)
    return Errno(errno, "writing in the folder of", path);
  return {};
}

Status BatchRoot::WriteFile(std::string_view path,
                            const std::function<Status(const Write&)>& produce) const {
  TESSERA_ASSIGN_OR_RETURN(const auto steps, StepsOf(path));
  TESSERA_ASSIGN_OR_RETURN(const int parent, OpenParent(steps, /*makes_folders=*/true, path));
  const Descriptor folder(parent);
  const std::string draft = fmt::format(".batch.draft.{:016x}", SystemRandom64());
  const Descriptor file(openat(folder.get(), draft.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (file.get() < 0) return Errno(errno, "creating", path);
  const Status done = [&]() -> Status {
    Gathered out(file.get(), path);
    TESSERA_RETURN_IF_ERROR(produce([&](std::string_view bytes) { return out.Add(bytes); }));
    TESSERA_RETURN_IF_ERROR(out.Flush());
    if (fsync(file.get()) != 0) return Errno(errno, "syncing", path);
    if (renameat(folder.get(), draft.c_str(), folder.get(), steps.back().c_str()) != 0)
      return Errno(errno, "naming", path);
    return fsync(folder.get()) == 0 ? Status() : Errno(errno, "syncing the folder of", path);
  }();
  if (!done.ok()) unlinkat(folder.get(), draft.c_str(), 0);
  return done;
}

}  // namespace tessera::gateway
