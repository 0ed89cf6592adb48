// SPDX-License-Identifier: Apache-2.0
#include "bundle/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>

#include "base/draft.h"
#include "base/file.h"
#include "bundle/manifest.h"

namespace tessera::bundle {
namespace {

namespace fs = std::filesystem;

/// Absolute, links resolved as far as the path exists, no slash at the end.
Result<fs::path> Canonical(const fs::path& path) {
  std::error_code error;
  fs::path whole = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error) return Fail(ErrnoStatus(error.value(), "examining", path));
  return whole.has_filename() ? whole : whole.parent_path();
}

bool IsInside(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

Status InTheWay(const fs::path& target, std::string_view why) {
  return AlreadyExists(fmt::format(
      "{} is there and {}; it stays as it is: name a new or empty folder, or an older bundle",
      target.string(), why));
}

/// Whether `target` may be replaced: absent, empty, or a bundle and nothing else.
Status CheckReplaceable(const fs::path& target) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(target, error);
  if (status.type() == fs::file_type::not_found) return {};
  if (error) return ErrnoStatus(error.value(), "examining", target);
  if (status.type() != fs::file_type::directory) return InTheWay(target, "is no folder");
  const bool empty = fs::is_empty(target, error);
  if (error) return ErrnoStatus(error.value(), "reading the folder", target);
  if (empty) return {};
  const Result<Manifest> manifest = LoadManifest(target);
  if (!manifest.has_value())
    return InTheWay(target, fmt::format("is no bundle ({})", manifest.error().ToString()));
  fs::directory_iterator it(target, error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name != kManifestFile && manifest->FindFile(name) == nullptr)
      return InTheWay(target, fmt::format("holds {} besides a bundle", name));
  }
  return error ? ErrnoStatus(error.value(), "reading the folder", target) : Status();
}

Status CopyFile(const fs::path& from, const fs::path& to) {
  constexpr uint64_t kPieceBytes = 16 << 20;
  TESSERA_ASSIGN_OR_RETURN(const auto source, MappedFile::Open(from));
  TESSERA_ASSIGN_OR_RETURN(const auto writer, FileWriter::Create(to));
  for (ByteSpan rest = source->bytes(); !rest.empty();) {
    const ByteSpan piece = rest.first(std::min<uint64_t>(rest.size(), kPieceBytes));
    TESSERA_RETURN_IF_ERROR(writer->Append(piece));
    rest = rest.subspan(piece.size());
  }
  return writer->Finish();
}

}  // namespace

Status CheckExportTarget(const fs::path& target) {
  TESSERA_ASSIGN_OR_RETURN(const fs::path place, Canonical(target));
  return CheckReplaceable(place);
}

Status Export(const fs::path& bundle, const fs::path& target) {
  TESSERA_ASSIGN_OR_RETURN(const fs::path source, Canonical(bundle));
  TESSERA_ASSIGN_OR_RETURN(const fs::path place, Canonical(target));
  if (IsInside(place, source))
    return InvalidArgument(fmt::format("{} {} the bundle {}; name another folder", target.string(),
                                       place == source ? "is" : "lies inside", source.string()));
  TESSERA_ASSIGN_OR_RETURN(const Manifest manifest, LoadManifest(source));
  TESSERA_RETURN_IF_ERROR(VerifyFiles(source, manifest, Check::kSizesAndSmallFiles));
  TESSERA_RETURN_IF_ERROR(CheckReplaceable(place));
  std::error_code error;
  fs::create_directories(place.parent_path(), error);
  if (error) return ErrnoStatus(error.value(), "making the folder", place.parent_path());
  TESSERA_ASSIGN_OR_RETURN(Draft folder, Draft::Folder(place));
  for (const FileRecord& file : manifest.files)
    TESSERA_RETURN_IF_ERROR(CopyFile(source / file.name, folder.path() / file.name));
  TESSERA_RETURN_IF_ERROR(CopyFile(source / kManifestFile, folder.path() / kManifestFile));
  TESSERA_RETURN_IF_ERROR(SyncDirectory(folder.path()));
  TESSERA_RETURN_IF_ERROR(CheckReplaceable(place));  // Copying took a while.
  TESSERA_RETURN_IF_ERROR(folder.MoveTo(place));
  return SyncDirectory(place.parent_path());
}

}  // namespace tessera::bundle
