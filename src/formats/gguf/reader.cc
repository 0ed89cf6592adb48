// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "formats/gguf/metadata_reader.h"
#include "formats/limits.h"
#include "formats/source_file.h"
#include "tensor/known_dtypes.h"

namespace tessera::formats::gguf {
namespace {

constexpr uint32_t kOldestVersion = 2;
constexpr uint32_t kNewestVersion = 3;
constexpr uint64_t kDefaultAlignment = 32;
// Bytes of the smallest tensor info: name length, no name, no dimension, type, offset.
constexpr uint64_t kMinTensorInfoBytes = 8 + 4 + 4 + 8;

struct Header {
  uint32_t version;
  uint64_t tensor_count;
  uint64_t metadata_count;
};

Result<Header> ReadHeader(ByteReader& reader) {
  TESSERA_ASSIGN_OR_RETURN(const auto magic, reader.Read<uint32_t>("magic"));
  if (magic != kMagic)
    return Fail(InvalidArgument(
        fmt::format("offset 0: magic is {:#010x}, expected {:#010x} (\"GGUF\")", magic, kMagic)));
  TESSERA_ASSIGN_OR_RETURN(const auto version, reader.Read<uint32_t>("version"));
  if (version < kOldestVersion || version > kNewestVersion) {
    const bool is_swapped = __builtin_bswap32(version) <= kNewestVersion && version != 0;
    return Fail(Unimplemented(fmt::format("offset 4: version is {}, expected 2 or 3{}", version,
                                          is_swapped ? " (a big-endian file?)" : "")));
  }
  TESSERA_ASSIGN_OR_RETURN(const auto tensors, reader.Read<uint64_t>("tensor count"));
  TESSERA_ASSIGN_OR_RETURN(const auto pairs, reader.Read<uint64_t>("metadata count"));
  if (tensors > kMaxTensors)
    return Fail(ResourceExhausted(fmt::format(
        "offset 8: tensor count is {}, more than the limit of {}", tensors, kMaxTensors)));
  if (tensors > reader.remaining() / kMinTensorInfoBytes)
    return Fail(
        DataLoss(fmt::format("offset 8: tensor count is {}, but the file has only {} more "
                             "bytes, at least {} each",
                             tensors, reader.remaining(), kMinTensorInfoBytes)));
  return Header{version, tensors, pairs};
}

Result<uint64_t> ReadAlignment(const Metadata& metadata) {
  const MetadataValue* value = metadata.Find("general.alignment");
  if (value == nullptr) return kDefaultAlignment;
  const auto* alignment = std::get_if<uint32_t>(value);
  if (alignment == nullptr)
    return Fail(InvalidArgument(
        fmt::format("metadata general.alignment is {}, expected u32", KindName(*value))));
  if (!std::has_single_bit(*alignment) || *alignment > kMaxGgufAlignment)
    return Fail(InvalidArgument(
        fmt::format("metadata general.alignment is {}, expected a power of two up to {}",
                    *alignment, kMaxGgufAlignment)));
  return *alignment;
}

// Dimensions on disk are innermost first.
Result<tensor::Shape> ReadShape(ByteReader& reader, std::string_view field) {
  const uint64_t offset = reader.offset();
  TESSERA_ASSIGN_OR_RETURN(const auto rank, reader.Read<uint32_t>(field));
  if (rank > kMaxGgufDims)
    return Fail(InvalidArgument(fmt::format("offset {}: {}: {} dimensions, expected at most {}",
                                            offset, field, rank, kMaxGgufDims)));
  std::vector<int64_t> dims(rank);
  for (int64_t& dim : dims) {
    TESSERA_ASSIGN_OR_RETURN(dim, reader.Read<int64_t>(field));
  }
  std::ranges::reverse(dims);
  tensor::Shape shape(std::move(dims));
  if (auto elements = shape.Elements(); !elements.has_value())
    return Fail(InvalidArgument(
        fmt::format("offset {}: {}: {}", offset, field, elements.error().message())));
  return shape;
}

Result<uint64_t> TensorBytes(tensor::DType dtype, const tensor::Shape& shape) {
  TESSERA_ASSIGN_OR_RETURN(const uint64_t row,
                           tensor::RowBytes(dtype, static_cast<uint64_t>(shape.columns())));
  uint64_t bytes = 0;
  if (MulOverflows(row, static_cast<uint64_t>(shape.rows()), &bytes))
    return Fail(InvalidArgument(fmt::format("shape {} of {} overflows 64 bits of bytes",
                                            shape.ToString(), tensor::Name(dtype))));
  return bytes;
}

// One tensor info; `offset` stays relative to the data section.
Result<ParameterEntry> ReadTensorInfo(ByteReader& reader, uint64_t alignment,
                                      const std::string& what) {
  const uint64_t begin = reader.offset();
  TESSERA_ASSIGN_OR_RETURN(const std::string_view name,
                           ReadString(reader, kMaxTensorNameBytes, what));
  if (name.empty())
    return Fail(InvalidArgument(fmt::format("offset {}: {}: the name is empty", begin, what)));
  ParameterEntry entry;
  entry.name = name;
  const std::string field = fmt::format("tensor {}", name);
  TESSERA_ASSIGN_OR_RETURN(entry.shape, ReadShape(reader, field));
  const uint64_t type_offset = reader.offset();
  TESSERA_ASSIGN_OR_RETURN(const auto type, reader.Read<uint32_t>(field));
  const auto dtype = tensor::FindByGgufId(type);
  if (!dtype.has_value())
    return Fail(
        Unimplemented(fmt::format("offset {}: {}: unknown tensor type {}, expected a ggml type: {}",
                                  type_offset, field, type, tensor::KnownGgufIds())));
  entry.dtype = *dtype;
  auto bytes = TensorBytes(entry.dtype, entry.shape);
  if (!bytes.has_value())
    return Fail(InvalidArgument(
        fmt::format("offset {}: {}: {}", type_offset, field, bytes.error().message())));
  entry.bytes = *bytes;
  const uint64_t offset_offset = reader.offset();
  TESSERA_ASSIGN_OR_RETURN(entry.offset, reader.Read<uint64_t>(field));
  if (entry.offset % alignment != 0)
    return Fail(InvalidArgument(
        fmt::format("offset {}: {}: data offset is {}, expected a multiple of the alignment {}",
                    offset_offset, field, entry.offset, alignment)));
  return entry;
}

// Makes the offset absolute and checks the range.
Status PlaceTensor(ParameterEntry& entry, uint64_t data_begin, uint64_t file_bytes) {
  uint64_t begin = 0;
  uint64_t end = 0;
  if (AddOverflows(data_begin, entry.offset, &begin) || AddOverflows(begin, entry.bytes, &end))
    return InvalidArgument(
        fmt::format("tensor {}: data offset {} overflows 64 bits", entry.name, entry.offset));
  if (end > file_bytes)
    return DataLoss(fmt::format("tensor {}: its data is at {} to {}, but the file has {} bytes",
                                entry.name, begin, end, file_bytes));
  entry.offset = begin;
  return {};
}

Status CheckNoOverlap(const std::vector<ParameterEntry>& entries) {
  std::vector<const ParameterEntry*> by_offset;
  by_offset.reserve(entries.size());
  for (const ParameterEntry& entry : entries)
    if (entry.bytes > 0) by_offset.push_back(&entry);
  std::ranges::sort(by_offset, {}, &ParameterEntry::offset);
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const ParameterEntry& a = *by_offset[i - 1];
    const ParameterEntry& b = *by_offset[i];
    if (a.offset + a.bytes > b.offset)
      return InvalidArgument(fmt::format("tensor {} at {} to {} overlaps tensor {} at {}", a.name,
                                         a.offset, a.offset + a.bytes, b.name, b.offset));
  }
  return {};
}

Result<ParameterIndex> ParseUnnamed(SourceFile file) {
  ByteReader reader(file.bytes);
  TESSERA_ASSIGN_OR_RETURN(const Header header, ReadHeader(reader));
  TESSERA_ASSIGN_OR_RETURN(file.metadata, ReadMetadata(reader, header.metadata_count));
  TESSERA_ASSIGN_OR_RETURN(file.alignment, ReadAlignment(file.metadata));
  file.version = header.version;
  const uint64_t alignment = file.alignment;
  const uint64_t file_bytes = file.bytes.size();

  // The count was checked against the whole file; the metadata may have eaten it.
  if (header.tensor_count > reader.remaining() / kMinTensorInfoBytes)
    return Fail(
        DataLoss(fmt::format("offset {}: {} tensor infos do not fit into the remaining {} "
                             "bytes",
                             reader.offset(), header.tensor_count, reader.remaining())));
  std::vector<ParameterEntry> entries;
  entries.reserve(header.tensor_count);
  for (uint64_t i = 0; i < header.tensor_count; ++i) {
    TESSERA_ASSIGN_OR_RETURN(
        ParameterEntry entry,
        ReadTensorInfo(reader, alignment,
                       fmt::format("name of tensor {} of {}", i + 1, header.tensor_count)));
    entries.push_back(std::move(entry));
  }
  uint64_t data_begin = 0;
  if (!AlignUp(reader.offset(), alignment, &data_begin))
    return Fail(InvalidArgument("the data section's offset overflows 64 bits"));
  for (ParameterEntry& entry : entries)
    TESSERA_RETURN_IF_ERROR(PlaceTensor(entry, data_begin, file_bytes));
  TESSERA_RETURN_IF_ERROR(CheckNoOverlap(entries));

  ParameterIndex index;
  const uint32_t file_index = index.AddFile(std::move(file));
  for (ParameterEntry& entry : entries) {
    entry.file = file_index;
    if (Status added = index.Add(std::move(entry)); !added.ok())
      return Fail(InvalidArgument(added.message()));
  }
  return index;
}

}  // namespace

Result<ParameterIndex> Parse(ByteSpan bytes, const std::filesystem::path& path) {
  return ParseNamed(ParseUnnamed, FromBytes(Format::kGguf, bytes, path));
}

Result<ParameterIndex> Open(std::shared_ptr<const MappedFile> mapping) {
  return ParseNamed(ParseUnnamed, FromMapping(Format::kGguf, std::move(mapping)));
}

}  // namespace tessera::formats::gguf
