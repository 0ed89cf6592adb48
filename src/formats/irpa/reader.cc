// SPDX-License-Identifier: Apache-2.0
#include "formats/irpa/reader.h"

#include <fmt/format.h>

#include "formats/irpa/archive.h"
#include "formats/irpa/entry_metadata.h"
#include "formats/source_file.h"

namespace tessera::formats::irpa {
namespace {

Status GiveType(ParameterEntry& entry, const TensorType& type) {
  TESSERA_ASSIGN_OR_RETURN(
      const uint64_t expected,
      tensor::RowBytes(type.dtype, static_cast<uint64_t>(type.shape.elements())));
  if (expected != entry.bytes)
    return InvalidArgument(fmt::format("metadata says {} of {}, {} bytes, but the entry has {}",
                                       type.shape.ToString(), tensor::Name(type.dtype), expected,
                                       entry.bytes));
  entry.dtype = type.dtype;
  entry.shape = type.shape;
  return {};
}

Result<ParameterEntry> MakeEntry(const Entry& raw) {
  ParameterEntry entry;
  entry.name = raw.name;
  entry.note = raw.metadata;
  entry.bytes = raw.length;
  if (raw.type == EntryType::kSplat) {
    entry.splat = raw.splat;
  } else {
    entry.offset = raw.data_offset;
  }
  TESSERA_ASSIGN_OR_RETURN(const std::optional<TensorType> type, ParseEntryMetadata(raw.metadata));
  if (type.has_value()) {
    TESSERA_RETURN_IF_ERROR(GiveType(entry, *type));
    return entry;
  }
  // A splat can claim any length; a shape cannot.
  if (entry.bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return Fail(InvalidArgument(fmt::format("length is {}, beyond 2^63 - 1", entry.bytes)));
  entry.shape = tensor::Shape{static_cast<int64_t>(entry.bytes)};
  entry.is_tensor = false;
  return entry;
}

Result<ParameterIndex> ParseUnnamed(SourceFile file) {
  TESSERA_ASSIGN_OR_RETURN(const Archive archive, ReadArchive(file.bytes));
  ParameterIndex index;
  const uint32_t file_index = index.AddFile(std::move(file));
  for (const Entry& raw : archive.entries) {
    if (raw.type == EntryType::kSkip) continue;
    auto entry = MakeEntry(raw);
    if (!entry.has_value())
      return Fail(
          entry.error().WithContext(fmt::format("entry {} at offset {}", raw.name, raw.offset)));
    entry->file = file_index;
    TESSERA_RETURN_IF_ERROR(index.Add(*std::move(entry), /*allow_duplicates=*/true));
  }
  return index;
}

}  // namespace

Result<ParameterIndex> Parse(ByteSpan bytes, const std::filesystem::path& path) {
  return ParseNamed(ParseUnnamed, FromBytes(Format::kIrpa, bytes, path));
}

Result<ParameterIndex> Open(std::shared_ptr<const MappedFile> mapping) {
  return ParseNamed(ParseUnnamed, FromMapping(Format::kIrpa, std::move(mapping)));
}

}  // namespace tessera::formats::irpa
