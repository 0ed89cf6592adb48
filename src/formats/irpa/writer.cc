// SPDX-License-Identifier: Apache-2.0
#include "formats/irpa/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "formats/irpa/layout.h"

namespace tessera::formats::irpa {
namespace {

uint64_t EntryBytes(const WriteEntry& entry) {
  return entry.splat.has_value() ? kSplatEntryBytes : kDataEntryBytes;
}

uint64_t Aligned(uint64_t value, uint64_t alignment) {
  uint64_t aligned = 0;
  TESSERA_CHECK(AlignUp(value, alignment, &aligned));
  return aligned;
}

Status CheckEntry(const WriteEntry& entry) {
  if (!entry.splat.has_value()) return {};
  const int size = entry.splat->pattern_bytes;
  if (size != 1 && size != 2 && size != 4 && size != 8 && size != 16)
    return InvalidArgument(
        fmt::format("splat {}: pattern of {} bytes, expected 1, 2, 4, 8 or 16", entry.name, size));
  if (entry.bytes % static_cast<uint64_t>(size) != 0)
    return InvalidArgument(fmt::format("splat {}: {} bytes are no multiple of the pattern's {}",
                                       entry.name, entry.bytes, size));
  return {};
}

// Offsets and lengths of the three segments.
struct Segments {
  uint64_t table_bytes = 0;
  uint64_t metadata_offset = 0;
  uint64_t metadata_bytes = 0;
  uint64_t storage_offset = 0;
  uint64_t storage_bytes = 0;
};

constexpr uint64_t kTableOffset = (kHeaderBytes + kEntryAlignment - 1) & ~(kEntryAlignment - 1);

Segments PlaceHead(std::span<const WriteEntry> entries, const WriteOptions& options) {
  Segments segments;
  bool has_data = false;
  for (const WriteEntry& entry : entries) {
    segments.table_bytes = Aligned(segments.table_bytes, kEntryAlignment) + EntryBytes(entry);
    segments.metadata_bytes += entry.name.size() + entry.metadata.size();
    has_data = has_data || !entry.splat.has_value();
  }
  segments.metadata_offset = kTableOffset + segments.table_bytes;
  segments.storage_offset = Aligned(segments.metadata_offset + segments.metadata_bytes,
                                    has_data ? options.data_alignment : 1);
  return segments;
}

// Fills in the blobs' offsets, absolute, and the storage's length.
Status PlaceData(std::span<const WriteEntry> entries, const WriteOptions& options,
                 Segments& segments, std::vector<uint64_t>& offsets) {
  uint64_t cursor = 0;
  for (const WriteEntry& entry : entries) {
    if (entry.splat.has_value()) {
      offsets.push_back(0);
      continue;
    }
    uint64_t end = 0;
    if (!AlignUp(cursor, options.data_alignment, &cursor) ||
        AddOverflows(cursor, entry.bytes, &end) || end > (uint64_t{1} << 62))
      return InvalidArgument(fmt::format("entry {}: {} bytes make the archive larger than 2^62",
                                         entry.name, entry.bytes));
    offsets.push_back(segments.storage_offset + cursor);
    cursor = end;
  }
  segments.storage_bytes = cursor;
  return {};
}

void WriteHeader(ByteWriter& out, uint64_t entry_count, const Segments& segments) {
  out.Write(kMagic);
  out.Write(uint16_t{0});
  out.Write(uint16_t{0});
  out.Write(kHeaderBytes);
  out.Write(uint64_t{0});  // No next header.
  out.Write(uint64_t{0});  // No flags.
  out.Write(entry_count);
  out.Write(kTableOffset);
  out.Write(segments.table_bytes);
  out.Write(segments.metadata_offset);
  out.Write(segments.metadata_bytes);
  out.Write(segments.storage_offset);
  out.Write(segments.storage_bytes);
}

void WriteReference(ByteWriter& out, uint64_t& cursor, uint64_t length) {
  out.Write(length == 0 ? uint64_t{0} : cursor);
  out.Write(length);
  cursor += length;
}

void WriteTable(ByteWriter& out, std::span<const WriteEntry> entries, const Segments& segments,
                std::span<const uint64_t> offsets) {
  uint64_t text = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const WriteEntry& entry = entries[i];
    out.PadTo(kEntryAlignment);
    out.Write(EntryBytes(entry));
    out.Write(static_cast<uint32_t>(entry.splat ? EntryType::kSplat : EntryType::kData));
    out.Write(uint64_t{0});  // No flags.
    WriteReference(out, text, entry.name.size());
    WriteReference(out, text, entry.metadata.size());
    out.Write(entry.splat ? uint64_t{0} : kDeclaredDataAlignment);
    if (entry.splat) {
      out.Write(entry.bytes);
      std::array<std::byte, 16> pattern{};
      std::copy_n(entry.splat->pattern.begin(), entry.splat->pattern_bytes, pattern.begin());
      out.WriteBytes(pattern);
      out.Write(entry.splat->pattern_bytes);
    } else {
      out.Write(offsets[i] - segments.storage_offset);
      out.Write(entry.bytes);
    }
  }
}

}  // namespace

void SplatsFirst(std::vector<WriteEntry>& entries) {
  std::ranges::stable_partition(entries,
                                [](const WriteEntry& entry) { return entry.splat.has_value(); });
}

Result<ArchivePlan> PlanArchive(std::span<const WriteEntry> entries, const WriteOptions& options) {
  if (!std::has_single_bit(options.data_alignment) || options.data_alignment > kFileAlignment)
    return Fail(
        InvalidArgument(fmt::format("data alignment is {}, expected a power of two up to {}",
                                    options.data_alignment, kFileAlignment)));
  for (const WriteEntry& entry : entries) TESSERA_RETURN_IF_ERROR(CheckEntry(entry));
  ArchivePlan plan;
  plan.data_offsets.reserve(entries.size());
  Segments segments = PlaceHead(entries, options);
  TESSERA_RETURN_IF_ERROR(PlaceData(entries, options, segments, plan.data_offsets));

  ByteWriter out;
  WriteHeader(out, entries.size(), segments);
  out.PadTo(kEntryAlignment);
  WriteTable(out, entries, segments, plan.data_offsets);
  TESSERA_CHECK(out.size() == segments.metadata_offset);
  for (const WriteEntry& entry : entries) {
    out.WriteText(entry.name);
    out.WriteText(entry.metadata);
  }
  plan.head = std::move(out).Take();
  plan.storage_end = segments.storage_offset + segments.storage_bytes;
  plan.file_bytes = Aligned(plan.storage_end, kFileAlignment);
  return plan;
}

Result<std::unique_ptr<ArchiveWriter>> ArchiveWriter::Create(const std::filesystem::path& path,
                                                             std::span<const WriteEntry> entries,
                                                             const WriteOptions& options) {
  TESSERA_ASSIGN_OR_RETURN(const ArchivePlan plan, PlanArchive(entries, options));
  std::unique_ptr<ArchiveWriter> writer(new ArchiveWriter);
  writer->file_bytes_ = plan.file_bytes;
  for (size_t i = 0; i < entries.size(); ++i)
    if (!entries[i].splat)
      writer->blobs_.push_back({entries[i].name, plan.data_offsets[i], entries[i].bytes});
  TESSERA_ASSIGN_OR_RETURN(writer->file_, FileWriter::Create(path));
  TESSERA_RETURN_IF_ERROR(writer->file_->Append(AsBytes(plan.head)));
  writer->SkipEmptyBlobs();
  return writer;
}

void ArchiveWriter::SkipEmptyBlobs() {
  while (current_ < blobs_.size() && blobs_[current_].bytes == 0) ++current_;
}

Status ArchiveWriter::Append(ByteSpan bytes) {
  if (bytes.empty()) return {};
  if (current_ == blobs_.size())
    return InvalidArgument(fmt::format("{} bytes after the last entry's data", bytes.size()));
  const Blob& blob = blobs_[current_];
  if (bytes.size() > blob.bytes - written_)
    return InvalidArgument(fmt::format("entry {}: {} more bytes, but only {} of {} are missing",
                                       blob.name, bytes.size(), blob.bytes - written_, blob.bytes));
  if (written_ == 0) TESSERA_RETURN_IF_ERROR(file_->PadTo(blob.offset));
  TESSERA_RETURN_IF_ERROR(file_->Append(bytes));
  written_ += bytes.size();
  if (written_ == blob.bytes) {
    ++current_;
    written_ = 0;
    SkipEmptyBlobs();
  }
  return {};
}

Status ArchiveWriter::Finish() {
  if (current_ < blobs_.size())
    return FailedPrecondition(fmt::format("entry {} has {} of its {} bytes", blobs_[current_].name,
                                          written_, blobs_[current_].bytes));
  TESSERA_RETURN_IF_ERROR(file_->PadTo(file_bytes_));
  return file_->Finish();
}

}  // namespace tessera::formats::irpa
