// SPDX-License-Identifier: Apache-2.0
#include "formats/irpa/archive.h"

#include <fmt/format.h>

#include <cstring>

#include "formats/limits.h"

namespace tessera::formats::irpa {
namespace {

// Names may share bytes, but an honest file does not repeat its metadata segment many times over;
// copies of all names and metadata stay within this multiple of it (plus a little).
constexpr uint64_t kMaxTextSharing = 4;
constexpr uint64_t kTextSlackBytes = 64u << 10;

Result<Segment> ReadSegment(ByteReader& reader, std::string_view name, uint64_t file_bytes) {
  const uint64_t offset = reader.offset();
  Segment segment;
  TESSERA_ASSIGN_OR_RETURN(segment.offset, reader.Read<uint64_t>(name));
  TESSERA_ASSIGN_OR_RETURN(segment.length, reader.Read<uint64_t>(name));
  if (segment.offset > file_bytes || segment.length > file_bytes - segment.offset)
    return Fail(
        DataLoss(fmt::format("offset {}: {} is at {} with {} bytes, but the file has {} bytes",
                             offset, name, segment.offset, segment.length, file_bytes)));
  return segment;
}

Result<Header> ReadHeader(ByteSpan bytes) {
  ByteReader reader(bytes);
  TESSERA_ASSIGN_OR_RETURN(const auto magic, reader.Read<uint32_t>("magic"));
  if (magic != kMagic)
    return Fail(InvalidArgument(
        fmt::format("offset 0: magic is {:#010x}, expected {:#010x} (\"IRPA\")", magic, kMagic)));
  if (bytes.size() < kHeaderBytes)
    return Fail(DataLoss(fmt::format("the file has {} bytes, expected at least the header's {}",
                                     bytes.size(), kHeaderBytes)));
  Header header;
  TESSERA_ASSIGN_OR_RETURN(header.version_major, reader.Read<uint16_t>("version"));
  TESSERA_ASSIGN_OR_RETURN(header.version_minor, reader.Read<uint16_t>("version"));
  if (header.version_major != 0 || header.version_minor != 0)
    return Fail(Unimplemented(fmt::format("offset 4: version is {}.{}, expected 0.0",
                                          header.version_major, header.version_minor)));
  TESSERA_ASSIGN_OR_RETURN(header.header_size, reader.Read<uint64_t>("header size"));
  if (header.header_size < kHeaderBytes || header.header_size > bytes.size())
    return Fail(InvalidArgument(fmt::format("offset 8: header size is {}, expected {} to {}",
                                            header.header_size, kHeaderBytes, bytes.size())));
  TESSERA_ASSIGN_OR_RETURN(header.next_header_offset, reader.Read<uint64_t>("next header offset"));
  if (header.next_header_offset != 0)
    return Fail(Unimplemented(
        fmt::format("offset 16: next header offset is {}, but linked archives are not supported",
                    header.next_header_offset)));
  TESSERA_ASSIGN_OR_RETURN(header.flags, reader.Read<uint64_t>("flags"));
  if (header.flags != 0)
    return Fail(Unimplemented(fmt::format("offset 24: flags are {:#x}, expected 0", header.flags)));
  TESSERA_ASSIGN_OR_RETURN(header.entry_count, reader.Read<uint64_t>("entry count"));
  TESSERA_ASSIGN_OR_RETURN(header.entries, ReadSegment(reader, "entry segment", bytes.size()));
  TESSERA_ASSIGN_OR_RETURN(header.metadata, ReadSegment(reader, "metadata segment", bytes.size()));
  TESSERA_ASSIGN_OR_RETURN(header.storage, ReadSegment(reader, "storage segment", bytes.size()));
  if (header.entry_count > kMaxTensors)
    return Fail(
        ResourceExhausted(fmt::format("offset 32: entry count is {}, more than the limit of {}",
                                      header.entry_count, kMaxTensors)));
  if (header.entry_count > header.entries.length / kCommonEntryBytes)
    return Fail(DataLoss(fmt::format(
        "offset 32: entry count is {}, but the entry segment has {} bytes, at least {} each",
        header.entry_count, header.entries.length, kCommonEntryBytes)));
  return header;
}

// Reads the entries of one archive's table.
class TableReader {
 public:
  TableReader(ByteSpan bytes, const Header& header)
      : bytes_(bytes),
        header_(header),
        table_(bytes.subspan(header.entries.offset, header.entries.length)),
        text_left_(header.metadata.length * kMaxTextSharing + kTextSlackBytes) {}

  Result<Entry> Next() {
    uint64_t begin = 0;
    if (!AlignUp(next_, kEntryAlignment, &begin) || begin > table_.size())
      return Fail(DataLoss(fmt::format("offset {}: the entry segment ends before the last entry",
                                       header_.entries.offset + table_.size())));
    Entry entry;
    entry.offset = header_.entries.offset + begin;
    ByteReader reader(table_.subspan(begin));
    if (Status status = ReadFields(reader, entry); !status.ok())
      return Fail(std::move(status).WithContext(
          fmt::format("entry {} at offset {}", number_, entry.offset)));
    next_ = begin + entry.size;
    ++number_;
    return entry;
  }

 private:
  Status ReadFields(ByteReader& reader, Entry& entry) {
    const uint64_t available = reader.remaining();
    TESSERA_ASSIGN_OR_RETURN(entry.size, reader.Read<uint64_t>("entry size"));
    TESSERA_ASSIGN_OR_RETURN(const auto type, reader.Read<uint32_t>("type"));
    TESSERA_RETURN_IF_ERROR(CheckSize(entry.size, type, available));
    entry.type = static_cast<EntryType>(type);
    if (entry.type == EntryType::kSkip) return {};
    TESSERA_ASSIGN_OR_RETURN(const auto flags, reader.Read<uint64_t>("flags"));
    if (flags != 0) return Unimplemented(fmt::format("flags are {:#x}, expected 0", flags));
    TESSERA_ASSIGN_OR_RETURN(const ByteSpan name, ReadReference(reader, header_.metadata, "name"));
    TESSERA_ASSIGN_OR_RETURN(const ByteSpan metadata,
                             ReadReference(reader, header_.metadata, "metadata"));
    entry.name = AsText(name);
    entry.metadata = AsText(metadata);
    TESSERA_RETURN_IF_ERROR(CheckText(entry));
    TESSERA_ASSIGN_OR_RETURN(entry.minimum_alignment, reader.Read<uint64_t>("minimum alignment"));
    if (entry.type == EntryType::kExternal)
      return Unimplemented(fmt::format(
          "{} is EXTERNAL, in another file: not supported; merge the files first", entry.name));
    return entry.type == EntryType::kSplat ? ReadSplat(reader, entry) : ReadData(reader, entry);
  }

  static Status CheckSize(uint64_t size, uint32_t type, uint64_t available) {
    constexpr uint64_t kLeast[] = {kCommonEntryBytes, kSplatEntryBytes, kDataEntryBytes,
                                   kExternalEntryBytes};
    if (type >= std::size(kLeast))
      return InvalidArgument(fmt::format("type is {}, expected 0 to 3", type));
    if (size < kLeast[type])
      return InvalidArgument(fmt::format("entry size is {}, expected at least {} for type {}", size,
                                         kLeast[type], type));
    if (size > available)
      return DataLoss(fmt::format("entry size is {}, but the entry segment has {} bytes left", size,
                                  available));
    return {};
  }

  // An (offset, length) pair and the bytes that it names in `segment`.
  Result<ByteSpan> ReadReference(ByteReader& reader, const Segment& segment,
                                 std::string_view field) {
    TESSERA_ASSIGN_OR_RETURN(const auto offset, reader.Read<uint64_t>(field));
    TESSERA_ASSIGN_OR_RETURN(const auto length, reader.Read<uint64_t>(field));
    if (offset > segment.length || length > segment.length - offset)
      return Fail(DataLoss(fmt::format("{} is at {} with {} bytes in a segment of {} bytes", field,
                                       offset, length, segment.length)));
    return bytes_.subspan(segment.offset + offset, length);
  }

  Status CheckText(const Entry& entry) {
    if (entry.name.size() > kMaxTensorNameBytes)
      return ResourceExhausted(fmt::format("name has {} bytes, more than the limit of {}",
                                           entry.name.size(), kMaxTensorNameBytes));
    const uint64_t text = entry.name.size() + entry.metadata.size();
    if (text > text_left_)
      return ResourceExhausted(fmt::format(
          "names and metadata together repeat the metadata segment of {} bytes more than {} times",
          header_.metadata.length, kMaxTextSharing));
    text_left_ -= text;
    return {};
  }

  static Status ReadSplat(ByteReader& reader, Entry& entry) {
    TESSERA_ASSIGN_OR_RETURN(entry.length, reader.Read<uint64_t>("length"));
    TESSERA_ASSIGN_OR_RETURN(const ByteSpan pattern, reader.ReadBytes(16, "pattern"));
    TESSERA_ASSIGN_OR_RETURN(const auto size, reader.Read<uint8_t>("pattern length"));
    if (size != 1 && size != 2 && size != 4 && size != 8 && size != 16)
      return InvalidArgument(fmt::format("pattern length is {}, expected 1, 2, 4, 8 or 16", size));
    if (entry.length % size != 0)
      return InvalidArgument(
          fmt::format("length {} is no multiple of the pattern length {}", entry.length, size));
    std::memcpy(entry.splat.pattern.data(), pattern.data(), size);
    entry.splat.pattern_bytes = size;
    return {};
  }

  Status ReadData(ByteReader& reader, Entry& entry) {
    TESSERA_ASSIGN_OR_RETURN(const ByteSpan data,
                             ReadReference(reader, header_.storage, "storage"));
    entry.length = data.size();
    entry.data_offset = static_cast<uint64_t>(data.data() - bytes_.data());
    return {};
  }

  ByteSpan bytes_;
  const Header& header_;
  ByteSpan table_;
  uint64_t text_left_;
  uint64_t next_ = 0;
  uint64_t number_ = 0;
};

}  // namespace

Result<Archive> ReadArchive(ByteSpan bytes) {
  Archive archive;
  TESSERA_ASSIGN_OR_RETURN(archive.header, ReadHeader(bytes));
  archive.entries.reserve(archive.header.entry_count);
  TableReader table(bytes, archive.header);
  for (uint64_t i = 0; i < archive.header.entry_count; ++i) {
    TESSERA_ASSIGN_OR_RETURN(const Entry entry, table.Next());
    archive.entries.push_back(entry);
  }
  return archive;
}

}  // namespace tessera::formats::irpa
