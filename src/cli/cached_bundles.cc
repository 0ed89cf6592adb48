// SPDX-License-Identifier: Apache-2.0
#include "cli/cached_bundles.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/draft.h"
#include "base/file.h"
#include "bundle/bundle.h"
#include "hub/file_lock.h"

namespace tessera::cli {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> Entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    entries.push_back(it->path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

/// "bundles/Model/folder/file" -> its parts; empty when the path has another shape.
struct EntryParts {
  std::string model;
  std::string folder;
  std::string file;
};
EntryParts Split(std::string_view path) {
  path.remove_prefix(kBundleEntries.size());
  const size_t first = path.find('/');
  const size_t second = first == std::string_view::npos ? first : path.find('/', first + 1);
  if (second == std::string_view::npos || path.find('/', second + 1) != std::string_view::npos)
    return {};
  EntryParts parts{std::string(path.substr(0, first)),
                   std::string(path.substr(first + 1, second - first - 1)),
                   std::string(path.substr(second + 1))};
  // Names with a dot in front are the store's own drafts and locks.
  if (parts.model.starts_with('.') || parts.folder.starts_with('.')) return {};
  return parts;
}

Status MakeFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  return error ? ErrnoStatus(error.value(), "making", folder) : Status();
}

Status CheckDraft(const fs::path& draft) {
  TESSERA_ASSIGN_OR_RETURN(const bundle::Manifest manifest, bundle::LoadManifest(draft));
  return bundle::VerifyFiles(draft, manifest, bundle::Check::kEverything);
}

}  // namespace

std::vector<CachedBundle> ScanBundles(const fs::path& cache) {
  std::vector<CachedBundle> bundles;
  for (const fs::path& model : Entries(cache / "bundles"))
    for (const fs::path& folder : Entries(model)) {
      if (folder.filename().native().starts_with('.') || !bundle::IsBundle(folder)) continue;
      CachedBundle found{folder, (model.filename() / folder.filename()).string(),
                         bundle::LoadManifest(folder), 0};
      for (const fs::path& file : Entries(folder)) {
        std::error_code error;
        const uint64_t bytes = fs::file_size(file, error);
        if (!error) found.bytes += bytes;
      }
      bundles.push_back(std::move(found));
    }
  return bundles;
}

bool IsCachedBundleName(std::string_view name) {
  constexpr size_t kKeyDigits = 16;
  const size_t slash = name.find('/');
  if (slash == 0 || slash == std::string_view::npos || name.front() == '.') return false;
  const std::string_view folder = name.substr(slash + 1);
  if (folder.empty() || folder.front() == '.' || folder.find('/') != std::string_view::npos)
    return false;
  const size_t dash = folder.rfind('-');
  return dash != std::string_view::npos && folder.size() - dash - 1 == kKeyDigits &&
         folder.find_first_not_of("0123456789abcdef", dash + 1) == std::string_view::npos;
}

Status AddToPack(const CachedBundle& bundle, std::vector<hub::PackSource>* sources) {
  if (!bundle.manifest.has_value()) return bundle.manifest.error();
  const auto add = [&](std::string_view name, uint64_t bytes, std::string sha256) {
    sources->push_back(
        {{fmt::format("{}{}/{}", kBundleEntries, bundle.name, name), bytes, std::move(sha256)},
         bundle.folder / name});
  };
  for (const bundle::FileRecord& file : bundle.manifest->files)
    add(file.name, file.bytes, file.sha256);
  std::error_code error;
  const uint64_t bytes = fs::file_size(bundle.folder / bundle::kManifestFile, error);
  if (error) return ErrnoStatus(error.value(), "reading", bundle.folder);
  add(bundle::kManifestFile, bytes, "");
  return {};
}

Result<size_t> ImportBundle(hub::PackReader& reader, size_t first, const fs::path& cache,
                            std::string* note) {
  const std::vector<hub::PackEntry>& entries = reader.manifest().entries;
  const EntryParts bundle = Split(entries[first].path);
  if (bundle.file.empty())
    return Fail(InvalidArgument(
        fmt::format("the pack's entry {} is no file of a bundle", entries[first].path)));
  size_t count = 0;
  while (first + count < entries.size()) {
    const std::string& path = entries[first + count].path;
    if (!path.starts_with(kBundleEntries)) break;
    const EntryParts parts = Split(path);
    if (parts.model != bundle.model || parts.folder != bundle.folder) break;
    ++count;
  }
  const fs::path model = cache / "bundles" / bundle.model;
  const fs::path target = model / bundle.folder;
  const auto pass_over = [&] {
    *note = fmt::format("{}/{} is there already and stays", bundle.model, bundle.folder);
    for (size_t i = 0; i < count; ++i) reader.Skip();
    return count;
  };
  if (IsPresent(target)) return pass_over();
  TESSERA_RETURN_IF_ERROR(MakeFolder(model));
  // The store's own lock: whoever compiles this bundle, or imports it, too, is waited for.
  const fs::path lock_path = model / fmt::format(".{}.lock", bundle.folder);
  TESSERA_ASSIGN_OR_RETURN(const auto lock, hub::FileLock::TryLock(lock_path));
  if (!lock)
    return Fail(FailedPrecondition(
        fmt::format("{}/{} is being made by another process: import again when it is done",
                    bundle.model, bundle.folder)));
  if (IsPresent(target)) return pass_over();  // Since we looked.
  TESSERA_ASSIGN_OR_RETURN(Draft draft, Draft::Folder(target));
  for (size_t i = 0; i < count; ++i) {
    TESSERA_ASSIGN_OR_RETURN(
        const auto writer, FileWriter::Create(draft.path() / Split(entries[first + i].path).file));
    TESSERA_RETURN_IF_ERROR(reader.Next([&](ByteSpan bytes) { return writer->Append(bytes); }));
    TESSERA_RETURN_IF_ERROR(writer->Finish());
  }
  TESSERA_RETURN_IF_ERROR(CheckDraft(draft.path()));
  TESSERA_RETURN_IF_ERROR(SyncDirectory(draft.path()));
  TESSERA_RETURN_IF_ERROR(draft.MoveTo(target));
  TESSERA_RETURN_IF_ERROR(SyncDirectory(model));
  return count;
}

}  // namespace tessera::cli
