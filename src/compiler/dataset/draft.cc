// SPDX-License-Identifier: Apache-2.0
#include "compiler/dataset/draft.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

#include "base/file.h"
#include "formats/irpa/dataset.h"

namespace tessera::compiler {
namespace {

namespace fs = std::filesystem;
namespace irpa = formats::irpa;

bool AreDigits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Takes `prefix` and `suffix` off; false when they are not there.
bool Strip(std::string_view prefix, std::string_view suffix, std::string_view* text) {
  if (text->size() < prefix.size() + suffix.size() || !text->starts_with(prefix) ||
      !text->ends_with(suffix))
    return false;
  *text = text->substr(prefix.size(), text->size() - prefix.size() - suffix.size());
  return true;
}

/// ".X.irpa.PID.tmp" or ".X.rankN.irpa.PID.tmp".
bool IsDraftOf(std::string_view stem, std::string_view name) {
  if (!Strip(fmt::format(".{}.", stem), ".tmp", &name)) return false;
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || !AreDigits(name.substr(dot + 1))) return false;
  name = name.substr(0, dot);
  return name == "irpa" || (Strip("rank", ".irpa", &name) && AreDigits(name));
}

}  // namespace

DatasetDraft::DatasetDraft(fs::path target) : target_(std::move(target)) {
  folder_ = ::open(Folder().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_ < 0) return;  // Writing will say why.
  if (::flock(folder_, LOCK_EX | LOCK_NB) == 0) RemoveLeftovers();
  // Waits at most for another's look at the names.
  while (::flock(folder_, LOCK_SH) != 0 && errno == EINTR) {
  }
}

DatasetDraft::~DatasetDraft() {
  std::error_code ignored;
  for (const auto& [temporary, path] : files_) fs::remove(temporary, ignored);
  if (folder_ >= 0) ::close(folder_);
}

fs::path DatasetDraft::Folder() const {
  return target_.has_parent_path() ? target_.parent_path() : fs::path(".");
}

fs::path DatasetDraft::Add(const fs::path& path) {
  const fs::path temporary =
      path.parent_path() / fmt::format(".{}.{}.tmp", path.filename().string(), ::getpid());
  files_.emplace_back(temporary, path);
  return temporary;
}

Status DatasetDraft::Publish() {
  std::error_code error;
  if (files_.size() > 1) fs::remove(target_, error);
  if (error) return ErrnoStatus(error.value(), "removing", target_);
  for (size_t i = files_.size(); i-- > 0;) {
    fs::rename(files_[i].first, files_[i].second, error);
    if (error) return ErrnoStatus(error.value(), "renaming", files_[i].second);
  }
  RemoveOtherRanks(std::ssize(files_) - 1);
  return SyncDirectory(Folder());
}

void DatasetDraft::RemoveLeftovers() const {
  const std::string stem = target_.stem().string();
  std::error_code error;
  std::vector<fs::path> stale;
  for (fs::directory_iterator it(Folder(), error), end; !error && it != end; it.increment(error))
    if (IsDraftOf(stem, it->path().filename().string())) stale.push_back(it->path());
  // Best effort: what cannot be removed only costs disk space.
  for (const fs::path& path : stale) fs::remove(path, error);
}

/// Rank files of an older set with more ranks would only confuse.
void DatasetDraft::RemoveOtherRanks(int64_t ranks) const {
  std::error_code ignored;
  while (fs::remove(irpa::RankPath(target_, ranks), ignored)) ++ranks;
}

}  // namespace tessera::compiler
