// SPDX-License-Identifier: Apache-2.0
//
// DatasetDraft: the files of a dataset while they are written, each a Draft (base/draft.h), until
// all of them are published. One thread.
#pragma once

#include <filesystem>
#include <utility>
#include <vector>

#include "base/draft.h"
#include "base/status.h"

namespace tessera::compiler {

class DatasetDraft {
 public:
  /// `target` is X.irpa, in a folder that exists.
  explicit DatasetDraft(std::filesystem::path target) : target_(std::move(target)) {}

  /// The temporary name of a file of the set. The first one is X.irpa's.
  Result<std::filesystem::path> Add(const std::filesystem::path& path);

  /// X.irpa last: a set is there when it is. An older X.irpa goes first, since its rank files are
  /// about to change under it; alone it is replaced at once. Ranks that the new set lacks go.
  Status Publish();

 private:
  void RemoveOtherRanks(int64_t ranks) const;

  std::filesystem::path target_;
  std::vector<std::pair<Draft, std::filesystem::path>> files_;  // And where it goes.
};

}  // namespace tessera::compiler
