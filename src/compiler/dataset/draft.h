// SPDX-License-Identifier: Apache-2.0
//
// DatasetDraft: the files of a dataset while they are written: under hidden names beside their
// targets, ".X.irpa.PID.tmp", until all of them are published. One thread.
//
// What killed processes left is removed when the next draft of the same dataset begins. Writers
// hold a shared lock (flock) on the folder; whoever gets it alone knows that nobody writes there.
// Where a file system has no such locks nothing is removed.
#pragma once

#include <filesystem>
#include <utility>
#include <vector>

#include "base/status.h"

namespace tessera::compiler {

class DatasetDraft {
 public:
  /// `target` is X.irpa, in a folder that exists.
  explicit DatasetDraft(std::filesystem::path target);
  ~DatasetDraft();  // Removes what was not published.
  DatasetDraft(const DatasetDraft&) = delete;
  DatasetDraft& operator=(const DatasetDraft&) = delete;

  /// The temporary name of a file of the set. The first one is X.irpa's.
  std::filesystem::path Add(const std::filesystem::path& path);

  /// X.irpa last: a set is there when it is. An older X.irpa goes first, since its rank files are
  /// about to change under it; alone it is replaced at once. Ranks that the new set lacks go.
  Status Publish();

 private:
  std::filesystem::path Folder() const;
  void RemoveLeftovers() const;
  void RemoveOtherRanks(int64_t ranks) const;

  std::filesystem::path target_;
  int folder_ = -1;  // Of the lock; -1 where there is none.
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>> files_;  // Temporary, target
};

}  // namespace tessera::compiler
