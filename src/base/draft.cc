// SPDX-License-Identifier: Apache-2.0
#include "base/draft.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "base/random.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = ".draft.";
constexpr size_t kTagDigits = 16;
constexpr std::array<int, 3> kEndingSignals = {SIGINT, SIGTERM, SIGHUP};

/// More drafts at once than this are not removed by signals, only by the next maker.
constexpr size_t kSlots = 64;
enum SlotState : int { kFree, kBeingWritten, kArmed };
struct Slot {
  std::atomic<int> state{kFree};
  std::array<char, PATH_MAX> path{};
};
std::array<Slot, kSlots> g_slots;
std::atomic<bool> g_is_ending{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

int TakeSlot(const std::string& path) {
  if (path.size() >= PATH_MAX) return -1;
  for (size_t i = 0; i < kSlots; ++i) {
    int expected = kFree;
    if (!g_slots[i].state.compare_exchange_strong(expected, kBeingWritten)) continue;
    std::memcpy(g_slots[i].path.data(), path.c_str(), path.size() + 1);
    g_slots[i].state.store(kArmed, std::memory_order_release);
    return static_cast<int>(i);
  }
  return -1;
}

// What getdents64(2) fills; the C library has readdir only, which may allocate.
struct DirectoryEntry {
  uint64_t inode;
  int64_t offset;
  uint16_t bytes;
  uint8_t type;
  char name[1];
};

/// Only calls that signal-safety(7) and the kernel's own allow. Links are removed, not followed.
void RemoveTree(int parent, const char* name, int depth) {
  if (::unlinkat(parent, name, 0) == 0 || errno == ENOENT || depth == 0) return;
  const int folder = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return;
  alignas(DirectoryEntry) char buffer[2048];
  // Other threads may still make files: a few rounds.
  for (int round = 0; round < 3; ++round) {
    ::lseek(folder, 0, SEEK_SET);
    for (long got; (got = ::syscall(SYS_getdents64, folder, buffer, sizeof(buffer))) > 0;) {
      for (long at = 0; at < got;) {
        const auto* entry = reinterpret_cast<const DirectoryEntry*>(buffer + at);
        at += entry->bytes;
        if (std::strcmp(entry->name, ".") != 0 && std::strcmp(entry->name, "..") != 0)
          RemoveTree(folder, entry->name, depth - 1);
      }
    }
    if (::unlinkat(parent, name, AT_REMOVEDIR) == 0) break;
  }
  ::close(folder);
}

/// A signal is ending the process: what fails now, since its folder is gone, is no news.
void StopIfEnding() {
  while (g_is_ending) ::pause();
}

void EndBySignal(int signal) {
  RemoveOwnDrafts();
  ::signal(signal, SIG_DFL);
  ::raise(signal);  // Delivered when this returns.
}

bool IsDraftName(std::string_view name) {
  constexpr size_t kTail = kMark.size() + kTagDigits;
  if (!name.starts_with('.') || name.size() <= kTail) return false;
  const std::string_view tail = name.substr(name.size() - kTail);
  return tail.starts_with(kMark) &&
         tail.find_first_not_of("0123456789abcdef", kMark.size()) == std::string_view::npos;
}

void RemoveDeadDrafts(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> drafts;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (IsDraftName(it->path().filename().native())) drafts.push_back(it->path());
  for (const fs::path& draft : drafts) {
    const int fd = ::open(draft.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) continue;
    // Best effort: what cannot be removed only costs disk space.
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) fs::remove_all(draft, error);
    ::close(fd);
  }
}

fs::path FolderOf(const fs::path& target) {
  return target.has_parent_path() ? target.parent_path() : fs::path(".");
}

/// Nobody else's, also not of a process with the same id in another container that shares the disk.
fs::path NameFor(const fs::path& target) {
  return target.parent_path() / fmt::format(".{}{}{:0{}x}", target.filename().string(), kMark,
                                            SystemRandom64(), kTagDigits);
}

/// Whether the name still stands for what is open.
bool IsStill(const fs::path& path, int fd) {
  struct stat by_path {};
  struct stat by_fd {};
  return ::lstat(path.c_str(), &by_path) == 0 && ::fstat(fd, &by_fd) == 0 &&
         by_path.st_ino == by_fd.st_ino && by_path.st_dev == by_fd.st_dev;
}

}  // namespace

Draft::Draft(fs::path path) : path_(std::move(path)), slot_(TakeSlot(path_.native())) {}

Draft::~Draft() {
  if (path_.empty()) return;
  StopIfEnding();
  std::error_code error;  // What cannot be removed only costs disk space.
  fs::remove_all(path_, error);
  Release();
}

void Draft::Release() {
  path_.clear();
  if (slot_ >= 0) g_slots[static_cast<size_t>(slot_)].state.store(kFree);
  slot_ = -1;
  if (lock_ >= 0) ::close(lock_);
  lock_ = -1;
}

Result<Draft> Draft::File(const fs::path& target) {
  return Make(target, false);
}

Result<Draft> Draft::Folder(const fs::path& target) {
  return Make(target, true);
}

Result<Draft> Draft::Make(const fs::path& target, bool is_folder) {
  RemoveDeadDrafts(FolderOf(target));
  // Who looks for dead drafts may find ours before it is locked, and remove it: then the next one.
  for (;;) {
    // Armed before it is there, so that no signal finds it there and not armed.
    Draft draft(NameFor(target));
    StopIfEnding();
    const char* const path = draft.path_.c_str();
    const bool made =
        is_folder ? ::mkdir(path, 0777) == 0
                  : (draft.lock_ = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                          0644)) >= 0;
    if (!made) {
      Status status = ErrnoStatus(errno, is_folder ? "making the folder" : "creating", path);
      draft.Release();
      return Fail(std::move(status));
    }
    if (is_folder) draft.lock_ = ::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (draft.lock_ < 0 && errno != ENOENT) return Fail(ErrnoStatus(errno, "opening", path));
    if (draft.lock_ < 0) continue;
    // Where nothing can be locked nobody takes it for dead.
    if (::flock(draft.lock_, LOCK_EX) != 0 || IsStill(draft.path_, draft.lock_)) return draft;
  }
}

Status Draft::MoveTo(const fs::path& target) {
  if (::rename(path_.c_str(), target.c_str()) == 0) {
    Release();
    return {};
  }
  const bool is_folder_over_folder = errno == ENOTEMPTY || errno == EEXIST;
  if (!is_folder_over_folder) return ErrnoStatus(errno, "renaming to", target);
  if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) != 0)
    return Replace(target);
  // What was there has the draft's name now, and goes with it.
  std::error_code ignored;  // Another may be removing it, too.
  fs::remove_all(path_, ignored);
  Release();
  return {};
}

/// In two steps, on file systems that cannot exchange.
Status Draft::Replace(const fs::path& folder) {
  TESSERA_ASSIGN_OR_RETURN(Draft old, Take(folder));
  if (::rename(path_.c_str(), folder.c_str()) == 0) {
    Release();
    return {};
  }
  Status status = ErrnoStatus(errno, "renaming to", folder);
  // Back with the old one; it goes only when another's is in its place.
  if (::rename(old.path_.c_str(), folder.c_str()) != 0 && !IsPresent(folder))
    status =
        std::move(status).WithContext(fmt::format("the old one is now {}", old.path_.string()));
  else if (IsPresent(old.path_))
    return status;
  old.Release();
  return status;
}

/// What is at `path` becomes a draft: out of sight, and gone when the draft dies. Needs no room.
Result<Draft> Draft::Take(const fs::path& path) {
  Draft draft(NameFor(path));
  if (::rename(path.c_str(), draft.path_.c_str()) != 0) {
    const int error = errno;
    draft.Release();
    return Fail(ErrnoStatus(error, "moving aside", path));
  }
  // Should another take it for dead before this, it removes what we remove.
  draft.lock_ = ::open(draft.path_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (draft.lock_ >= 0) (void)::flock(draft.lock_, LOCK_EX | LOCK_NB);
  return draft;
}

Status RemoveAtOnce(const fs::path& path) {
  RemoveDeadDrafts(FolderOf(path));
  TESSERA_ASSIGN_OR_RETURN(const Draft away, Draft::Take(path));
  std::error_code error;
  fs::remove_all(away.path(), error);
  return error && IsPresent(away.path()) ? ErrnoStatus(error.value(), "removing", away.path())
                                         : Status();
}

void InstallDraftGuard() {
  struct sigaction guard {};
  guard.sa_handler = EndBySignal;
  for (const int signal : kEndingSignals) sigaddset(&guard.sa_mask, signal);
  for (const int signal : kEndingSignals) {
    struct sigaction now {};
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_DFL)
      ::sigaction(signal, &guard, nullptr);
  }
}

void RemoveOwnDrafts() {
  const int saved = errno;
  constexpr int kDepth = 16;  // Of a repository with folders in folders; a bundle's draft has 1.
  g_is_ending = true;
  for (const Slot& slot : g_slots)
    if (slot.state.load(std::memory_order_acquire) == kArmed)
      RemoveTree(AT_FDCWD, slot.path.data(), kDepth);
  errno = saved;
}

}  // namespace tessera
