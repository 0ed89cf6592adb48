// SPDX-License-Identifier: Apache-2.0
#include "hub/pack.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <set>
#include <tuple>

#include "base/check.h"
#include "base/draft.h"
#include "base/file.h"
#include "base/hash.h"
#include "hub/limits.h"
#include "hub/repository_name.h"

namespace tessera::hub {
namespace {

constexpr std::string_view kMagic = "tessera-pack 1 ";
constexpr size_t kMaxHeadBytes = 128;
constexpr uint64_t kPieceBytes = 4 << 20;

Result<PackEntry> ParseEntry(const json::Value& value) {
  if (!value.is_object()) return Fail(InvalidArgument("an entry is no object"));
  const json::Object& row = value.get_object();
  PackEntry entry;
  TESSERA_ASSIGN_OR_RETURN(entry.path, json::NeedString(row, "path"));
  TESSERA_RETURN_IF_ERROR(CheckFileName(entry.path));
  TESSERA_ASSIGN_OR_RETURN(const int64_t bytes, json::NeedInt(row, "bytes"));
  if (bytes < 0 || static_cast<uint64_t>(bytes) > kMaxFileBytes)
    return Fail(InvalidArgument(fmt::format("{}: bytes is {}", entry.path, bytes)));
  entry.bytes = static_cast<uint64_t>(bytes);
  TESSERA_ASSIGN_OR_RETURN(entry.sha256, json::NeedString(row, "sha256"));
  if (entry.sha256.size() != 64 ||
      entry.sha256.find_first_not_of("0123456789abcdef") != std::string::npos)
    return Fail(InvalidArgument(entry.path + ": sha256 is not 64 lower-case hex digits"));
  return entry;
}

/// The head's two numbers: bytes and hash of the JSON.
Result<std::tuple<uint64_t, std::string>> ParseHead(std::string_view line) {
  const Status none =
      InvalidArgument("it is no pack of tessera's (tessera cache export makes one)");
  if (!line.starts_with(kMagic)) return Fail(none);
  line.remove_prefix(kMagic.size());
  uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), bytes);
  if (error != std::errc() || bytes > kMaxListingBytes) return Fail(none);
  line.remove_prefix(static_cast<size_t>(end - line.data()));
  if (line.size() != 65 || line.front() != ' ') return Fail(none);
  return std::tuple(bytes, std::string(line.substr(1)));
}

Status Append(FileWriter& writer, const PackSource& source, uint64_t* done, uint64_t total,
              const PackProgress& progress) {
  TESSERA_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(source.file));
  Sha256 hash;
  for (ByteSpan rest = file->bytes(); !rest.empty();) {
    const ByteSpan piece = rest.first(std::min<uint64_t>(rest.size(), kPieceBytes));
    hash.Update(piece);
    TESSERA_RETURN_IF_ERROR(writer.Append(piece));
    rest = rest.subspan(piece.size());
    *done += piece.size();
    if (progress) progress(*done, total);
  }
  TESSERA_RETURN_IF_ERROR(file->CheckIntact());
  if (file->bytes().size() == source.entry.bytes && hash.FinishHex() == source.entry.sha256)
    return {};
  return DataLoss(
      fmt::format("{} does not have the bytes it is named for: tessera cache verify "
                  "finds what is damaged",
                  source.file.string()));
}

}  // namespace

Result<PackManifest> ParsePackManifest(std::string_view text) {
  const json::Limits limits{.max_bytes = kMaxListingBytes, .max_depth = 16, .max_keys = 4096};
  TESSERA_ASSIGN_OR_RETURN(const json::Value value, json::Parse(text, limits, "the pack's list"));
  if (!value.is_object()) return Fail(InvalidArgument("the pack's list is no object"));
  const json::Value* rows = json::Find(value.get_object(), "entries");
  if (rows == nullptr || !rows->is_array())
    return Fail(InvalidArgument("the pack's list has no array entries"));
  if (rows->get_array().size() > kMaxListedFiles)
    return Fail(ResourceExhausted(
        fmt::format("the pack has more than the limit of {} entries", kMaxListedFiles)));
  PackManifest manifest;
  std::set<std::string> paths;
  for (const json::Value& row : rows->get_array()) {
    TESSERA_ASSIGN_OR_RETURN(PackEntry entry, ParseEntry(row));
    if (!paths.insert(entry.path).second)
      return Fail(InvalidArgument(fmt::format("the pack has \"{}\" twice", entry.path)));
    manifest.entries.push_back(std::move(entry));
  }
  const json::Value* repositories = json::Find(value.get_object(), "repositories");
  if (repositories != nullptr && repositories->is_array())
    manifest.repositories = repositories->get_array();
  return manifest;
}

std::string WritePackManifest(const PackManifest& manifest) {
  json::Array rows;
  for (const PackEntry& entry : manifest.entries)
    rows.push_back(
        json::Object{{"path", entry.path}, {"bytes", entry.bytes}, {"sha256", entry.sha256}});
  return json::Serialize(
             json::Object{{"entries", std::move(rows)}, {"repositories", manifest.repositories}}) +
         "\n";
}

Status WritePack(std::vector<PackSource> sources, json::Array repositories,
                 const std::filesystem::path& target, const PackProgress& progress) {
  if (IsPresent(target))
    return AlreadyExists(
        fmt::format("{} exists: name a file that does not, or remove it first", target.string()));
  PackManifest manifest;
  manifest.repositories = std::move(repositories);
  uint64_t total = 0;
  for (PackSource& source : sources) {
    if (source.entry.sha256.empty()) {
      TESSERA_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(source.file));
      source.entry.sha256 = Sha256Hex(file->bytes());
    }
    total += source.entry.bytes;
    manifest.entries.push_back(source.entry);
  }
  const std::string list = WritePackManifest(manifest);
  if (list.size() > kMaxListingBytes) return ResourceExhausted("too many files for one pack");
  TESSERA_ASSIGN_OR_RETURN(const Draft draft, Draft::File(target));
  TESSERA_ASSIGN_OR_RETURN(const auto writer, FileWriter::Create(draft.path()));
  TESSERA_RETURN_IF_ERROR(writer->Append(
      AsBytes(fmt::format("{}{} {}\n", kMagic, list.size(), Sha256Hex(AsBytes(list))))));
  TESSERA_RETURN_IF_ERROR(writer->Append(AsBytes(list)));
  uint64_t done = 0;
  for (const PackSource& source : sources)
    TESSERA_RETURN_IF_ERROR(Append(*writer, source, &done, total, progress));
  TESSERA_RETURN_IF_ERROR(writer->Finish());
  // A link, not a rename: what came there meanwhile is not replaced.
  if (::link(draft.path().c_str(), target.c_str()) != 0)
    return ErrnoStatus(errno, "naming the pack", target);
  return SyncDirectory(target.has_parent_path() ? target.parent_path() : ".");
}

Result<PackReader> PackReader::Open(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return Fail(NotFound(fmt::format("{} is no file", path.string())));
  PackReader reader;
  reader.path_ = path;
  reader.file_.open(path, std::ios::binary);
  std::string line(kMaxHeadBytes, '\0');
  reader.file_.getline(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(std::string_view(line.c_str()).size());
  auto head = ParseHead(line);
  if (!head.has_value()) return Fail(head.error().WithContext(path.string()));
  const auto& [bytes, sha256] = *head;
  std::string list(bytes, '\0');
  reader.file_.read(list.data(), static_cast<std::streamsize>(bytes));
  if (!reader.file_ || Sha256Hex(AsBytes(list)) != sha256)
    return Fail(DataLoss(fmt::format("{}: the pack's list is damaged", path.string())));
  auto manifest = ParsePackManifest(list);
  if (!manifest.has_value()) return Fail(manifest.error().WithContext(path.string()));
  reader.manifest_ = *std::move(manifest);
  uint64_t end = line.size() + 1 + bytes;
  for (const PackEntry& entry : reader.manifest_.entries) end += entry.bytes;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error || size != end)
    return Fail(
        DataLoss(fmt::format("{} has {} bytes, but its list is of {}: it was not copied "
                             "whole",
                             path.string(), size, end)));
  return reader;
}

Status PackReader::Next(const std::function<Status(ByteSpan)>& sink) {
  TESSERA_CHECK(next_ < manifest_.entries.size());
  const PackEntry& entry = manifest_.entries[next_++];
  Sha256 hash;
  std::vector<std::byte> buffer;
  for (uint64_t left = entry.bytes; left > 0;) {
    buffer.resize(std::min(left, kPieceBytes));
    file_.read(reinterpret_cast<char*>(buffer.data()), static_cast<std::streamsize>(buffer.size()));
    if (!file_) return Unavailable(fmt::format("{} cannot be read", path_.string()));
    hash.Update(buffer);
    TESSERA_RETURN_IF_ERROR(sink(buffer));
    left -= buffer.size();
  }
  if (hash.FinishHex() == entry.sha256) return {};
  return DataLoss(
      fmt::format("{}: {} is damaged: copy the pack again", path_.string(), entry.path));
}

void PackReader::Skip() {
  TESSERA_CHECK(next_ < manifest_.entries.size());
  file_.seekg(static_cast<std::streamoff>(manifest_.entries[next_++].bytes), std::ios::cur);
}

}  // namespace tessera::hub
