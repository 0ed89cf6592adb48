// SPDX-License-Identifier: Apache-2.0
//
// Draft: a file or folder that is being made, under a hidden name beside its place,
// ".NAME.draft.<16 hex digits>". What is visible is complete; what is not leaves with its maker:
//  - a draft that dies without MoveTo() or Release() is removed;
//  - SIGINT, SIGTERM and SIGHUP remove the drafts of the process before they end it (the guard);
//  - what killed processes left is known by its free lock (flock), and removed by whoever makes the
//    next draft in the same folder. Where a file system has no such locks it stays.
#pragma once

#include <filesystem>
#include <utility>

#include "base/status.h"

namespace tessera {

/// Belongs to one thread at a time. Errors as ErrnoStatus. The folder of `target` must be there.
class Draft {
 public:
  /// An empty file, to be opened by its path and filled.
  static Result<Draft> File(const std::filesystem::path& target);
  /// An empty folder.
  static Result<Draft> Folder(const std::filesystem::path& target);

  Draft(Draft&& other) noexcept
      : path_(std::exchange(other.path_, {})),
        lock_(std::exchange(other.lock_, -1)),
        slot_(std::exchange(other.slot_, -1)) {}
  Draft& operator=(Draft&&) = delete;
  ~Draft();

  const std::filesystem::path& path() const { return path_; }
  /// Gives the draft its name: replaces a file by a file, a folder by a folder, and removes what
  /// was there. One step, except for folders where the file system cannot exchange two names: there
  /// is none for a moment. Folders are not synced.
  Status MoveTo(const std::filesystem::path& target);
  /// It has a name that is to stay: nothing is removed any more.
  void Release();

 private:
  explicit Draft(std::filesystem::path path);
  friend Status RemoveAtOnce(const std::filesystem::path& path);
  static Result<Draft> Take(const std::filesystem::path& path);
  static Result<Draft> Make(const std::filesystem::path& target, bool is_folder);
  Status Replace(const std::filesystem::path& folder);
  std::filesystem::path path_;  // Empty after moving from or Release().
  int lock_ = -1;               // Held while it is alive; -1 where nothing can be locked.
  int slot_ = -1;               // Of the guard.
};

/// Removes a file or a folder with all in it, in one step for everybody else: it is renamed out of
/// sight first, and who has it open or mapped keeps it.
Status RemoveAtOnce(const std::filesystem::path& path);

/// From now on SIGINT, SIGTERM and SIGHUP, where they would end the process, do so after
/// RemoveOwnDrafts(); one that is ignored stays ignored. Once, before other threads begin.
void InstallDraftGuard();
/// Removes what this process has not finished. Safe in signal handlers; the process must end after:
/// a thread that makes or ends a draft stops there, so that nobody hears of its errors.
void RemoveOwnDrafts();

}  // namespace tessera
