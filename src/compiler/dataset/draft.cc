// SPDX-License-Identifier: Apache-2.0
#include "compiler/dataset/draft.h"

#include <system_error>

#include "base/file.h"
#include "formats/irpa/dataset.h"

namespace tessera::compiler {

namespace fs = std::filesystem;
namespace irpa = formats::irpa;

Result<fs::path> DatasetDraft::Add(const fs::path& path) {
  TESSERA_ASSIGN_OR_RETURN(Draft draft, Draft::File(path));
  files_.emplace_back(std::move(draft), path);
  return files_.back().first.path();
}

Status DatasetDraft::Publish() {
  std::error_code error;
  if (files_.size() > 1) fs::remove(target_, error);
  if (error) return ErrnoStatus(error.value(), "removing", target_);
  for (size_t i = files_.size(); i-- > 0;)
    TESSERA_RETURN_IF_ERROR(files_[i].first.MoveTo(files_[i].second));
  RemoveOtherRanks(std::ssize(files_) - 1);
  return SyncDirectory(target_.has_parent_path() ? target_.parent_path() : fs::path("."));
}

/// Rank files of an older set with more ranks would only confuse.
void DatasetDraft::RemoveOtherRanks(int64_t ranks) const {
  std::error_code ignored;
  while (fs::remove(irpa::RankPath(target_, ranks), ignored)) ++ranks;
}

}  // namespace tessera::compiler
