// SPDX-License-Identifier: Apache-2.0
#include "gateway/download/model_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/utf8.h"
#include "gateway/limits.h"

namespace tessera::gateway {
namespace {

namespace fs = std::filesystem;

constexpr int kDepthMax = 8;
constexpr uint64_t kRefBytesMax = 256;

bool IsBelow(const fs::path& folder, const fs::path& path) {
  const auto [of_folder, ignored] =
      std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return of_folder == folder.end();
}

/// The file that an entry stands for: itself, or a link's target below `links_into` where that is
/// not empty. Nothing for all else.
fs::path FileOf(const fs::directory_entry& entry, const fs::path& links_into) {
  std::error_code error;
  const fs::file_status status = entry.symlink_status(error);
  if (error) return {};
  if (fs::is_regular_file(status)) return entry.path();
  if (!fs::is_symlink(status) || links_into.empty()) return {};
  fs::path target = fs::canonical(entry.path(), error);
  const bool is_ours = !error && IsBelow(links_into, target) && fs::is_regular_file(target, error);
  return is_ours ? target : fs::path();
}

Result<std::vector<ModelFile>> FilesIn(const fs::path& folder, const fs::path& links_into) {
  std::vector<ModelFile> files;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    // Hidden ones are notes of tools.
    if (entry->path().filename().native().starts_with('.') || entry.depth() > kDepthMax) {
      entry.disable_recursion_pending();
      continue;
    }
    const fs::path file = FileOf(*entry, links_into);
    std::string name = entry->path().lexically_relative(folder).generic_string();
    if (file.empty() || !IsUtf8(name)) continue;
    if (files.size() == kModelFilesMax)
      return Fail(
          ResourceExhausted(fmt::format("the model has more than {} files", kModelFilesMax)));
    files.push_back({std::move(name), file});
  }
  if (error) return Fail(ErrnoStatus(error.value(), "reading", folder));
  if (files.empty()) return Fail(NotFound("the model's folder holds no files"));
  std::ranges::sort(files, {}, &ModelFile::name);
  return files;
}

/// "org/name@revision:selection" -> its snapshot in the cache.
Result<std::vector<ModelFile>> FilesOfRepository(std::string_view model, std::string revision,
                                                 const fs::path& hub_cache) {
  model = model.substr(0, model.find(':'));
  if (const size_t at = model.find('@'); at != std::string_view::npos) {
    if (revision.empty()) revision = model.substr(at + 1);
    model = model.substr(0, at);
  }
  if (revision.empty()) revision = "main";
  const size_t slash = model.find('/');
  if (slash == std::string_view::npos || revision.contains("..") || revision.starts_with('/'))
    return Fail(NotFound("the model was not downloaded yet"));
  const std::string name =
      fmt::format("models--{}--{}", model.substr(0, slash), model.substr(slash + 1));
  std::error_code error;
  const fs::path folder = fs::canonical(hub_cache / name, error);
  if (error) return Fail(NotFound("the model was not downloaded yet"));
  std::string commit = revision;
  if (const auto ref = ReadFile(folder / "refs" / revision, kRefBytesMax); ref.has_value())
    commit = ref->substr(0, ref->find_last_not_of(" \r\n") + 1);
  const fs::path snapshot = fs::canonical(folder / "snapshots" / commit, error);
  if (error || !IsBelow(folder / "snapshots", snapshot))
    return Fail(NotFound("the model was not downloaded yet"));
  return FilesIn(snapshot, folder / "blobs");
}

}  // namespace

Result<std::vector<ModelFile>> FindModelFiles(const EndpointSpec& spec, const ModelTable& models,
                                              const fs::path& hub_cache) {
  const auto model = spec.checkpoint_path.has_value()
                         ? models.ResolveCheckpoint(*spec.checkpoint_path)
                         : models.Resolve(spec.model_name);
  if (!model.has_value()) return Fail(NotFound(model.error().message()));
  std::error_code error;
  const fs::path path = fs::canonical(*model, error);
  if (!error && fs::is_regular_file(path, error))
    return std::vector<ModelFile>{{fs::path(*model).filename().string(), path}};
  if (!error && fs::is_directory(path, error)) return FilesIn(path, {});
  const bool is_address = model->contains("://"), is_path = model->starts_with('/');
  if (is_path) return Fail(NotFound("the model's files are gone"));
  if (is_address || !model->contains('/') || hub_cache.empty())
    return Fail(FailedPrecondition(
        "the model comes from an address, and its files are not kept in a folder of their own"));
  std::string revision;
  if (const json::Value* asked = json::Find(spec.engine, "revision"))
    if (const auto* text = asked->if_string()) revision = std::string(*text);
  return FilesOfRepository(*model, std::move(revision), hub_cache);
}

}  // namespace tessera::gateway
