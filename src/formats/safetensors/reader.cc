// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors/reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "formats/limits.h"
#include "formats/source_file.h"
#include "tensor/known_dtypes.h"

namespace tessera::formats::safetensors {
namespace {

constexpr std::string_view kMetadataKey = "__metadata__";

// Sub-byte types of newer files: known by name, so that the message can say so.
bool IsKnownButNotSupported(std::string_view dtype) {
  return dtype == "F4" || dtype == "F6_E2M3" || dtype == "F6_E3M2";
}

Result<json::Object> ReadHeader(ByteSpan bytes, uint64_t* data_begin) {
  ByteReader reader(bytes);
  TESSERA_ASSIGN_OR_RETURN(const auto length, reader.Read<uint64_t>("header length"));
  if (length > reader.remaining())
    return Fail(DataLoss(fmt::format("offset 0: header length is {}, but only {} bytes follow",
                                     length, reader.remaining())));
  if (length > kMaxSafetensorsHeaderBytes)
    return Fail(
        ResourceExhausted(fmt::format("offset 0: header length is {}, more than the limit of {}",
                                      length, kMaxSafetensorsHeaderBytes)));
  TESSERA_ASSIGN_OR_RETURN(const ByteSpan header, reader.ReadBytes(length, "header"));
  *data_begin = reader.offset();
  json::Limits limits;
  limits.max_bytes = kMaxSafetensorsHeaderBytes;
  limits.max_depth = kMaxSafetensorsJsonDepth;
  limits.max_keys = kMaxTensors + 1;
  TESSERA_ASSIGN_OR_RETURN(json::Value value, json::Parse(AsText(header), limits, "header"));
  if (!value.is_object())
    return Fail(
        InvalidArgument(fmt::format("header: is {}, expected an object", json::KindName(value))));
  return std::move(value.as_object());
}

// The header's numbers: non-negative integers; boost holds those past 2^63 - 1 as uint64.
Result<uint64_t> Unsigned(const json::Value& value, std::string_view what) {
  if (value.is_uint64()) return value.get_uint64();
  if (value.is_int64() && value.get_int64() >= 0) return static_cast<uint64_t>(value.get_int64());
  return Fail(InvalidArgument(fmt::format("{} is {}, expected a non-negative integer", what,
                                          json::Serialize(value).substr(0, 80))));
}

Result<const json::Array*> NeedArray(const json::Object& object, std::string_view key) {
  const json::Value* value = json::Find(object, key);
  if (value == nullptr)
    return Fail(InvalidArgument(fmt::format("{} is missing, expected an array", key)));
  if (!value->is_array())
    return Fail(
        InvalidArgument(fmt::format("{} is {}, expected an array", key, json::KindName(*value))));
  return &value->as_array();
}

Result<tensor::DType> ReadDType(const json::Object& object) {
  const json::Value* value = json::Find(object, "dtype");
  if (value == nullptr) return Fail(InvalidArgument("dtype is missing, expected a string"));
  if (!value->is_string())
    return Fail(
        InvalidArgument(fmt::format("dtype is {}, expected a string", json::KindName(*value))));
  const std::string_view name = value->as_string();
  if (auto dtype = tensor::FindBySafetensorsName(name); dtype.has_value()) return *dtype;
  return Fail(Unimplemented(fmt::format("{} dtype {}, expected one of {}",
                                        IsKnownButNotSupported(name) ? "unsupported" : "unknown",
                                        name.substr(0, 40), tensor::KnownSafetensorsNames())));
}

Result<tensor::Shape> ReadShape(const json::Object& object) {
  TESSERA_ASSIGN_OR_RETURN(const json::Array* array, NeedArray(object, "shape"));
  if (array->size() > kMaxRank)
    return Fail(InvalidArgument(
        fmt::format("shape has {} dimensions, expected at most {}", array->size(), kMaxRank)));
  std::vector<int64_t> dims;
  for (const json::Value& value : *array) {
    TESSERA_ASSIGN_OR_RETURN(const uint64_t dim, Unsigned(value, "shape"));
    // Past 2^63 - 1 it turns negative and Elements() refuses it.
    dims.push_back(static_cast<int64_t>(dim));
  }
  tensor::Shape shape(std::move(dims));
  TESSERA_RETURN_IF_ERROR(StatusOf(shape.Elements()));
  return shape;
}

// Offsets relative to the data section; checked against dtype and shape.
Result<ParameterEntry> ReadTensor(std::string_view name, const json::Value& value) {
  if (!value.is_object())
    return Fail(InvalidArgument(fmt::format("is {}, expected an object", json::KindName(value))));
  const json::Object& object = value.as_object();
  ParameterEntry entry;
  entry.name = name;
  TESSERA_ASSIGN_OR_RETURN(entry.dtype, ReadDType(object));
  TESSERA_ASSIGN_OR_RETURN(entry.shape, ReadShape(object));
  TESSERA_ASSIGN_OR_RETURN(const json::Array* offsets, NeedArray(object, "data_offsets"));
  if (offsets->size() != 2)
    return Fail(
        InvalidArgument(fmt::format("data_offsets has {} elements, expected 2", offsets->size())));
  TESSERA_ASSIGN_OR_RETURN(entry.offset, Unsigned((*offsets)[0], "data_offsets[0]"));
  TESSERA_ASSIGN_OR_RETURN(const uint64_t end, Unsigned((*offsets)[1], "data_offsets[1]"));
  if (end < entry.offset)
    return Fail(InvalidArgument(fmt::format(
        "data_offsets are [{}, {}], expected the end not before the begin", entry.offset, end)));
  entry.bytes = end - entry.offset;
  const auto elements = static_cast<uint64_t>(entry.shape.elements());
  TESSERA_ASSIGN_OR_RETURN(const uint64_t expected, tensor::RowBytes(entry.dtype, elements));
  if (entry.bytes != expected)
    return Fail(InvalidArgument(fmt::format("data_offsets span {} bytes, but {} of {} needs {}",
                                            entry.bytes, entry.shape.ToString(),
                                            tensor::Name(entry.dtype), expected)));
  return entry;
}

Result<Metadata> ReadMetadata(const json::Object& header) {
  Metadata metadata;
  const json::Value* value = json::Find(header, kMetadataKey);
  if (value == nullptr) return metadata;
  if (!value->is_object())
    return Fail(InvalidArgument(
        fmt::format("{} is {}, expected an object", kMetadataKey, json::KindName(*value))));
  for (const auto& [key, text] : value->as_object()) {
    if (!text.is_string())
      return Fail(InvalidArgument(fmt::format("{}: {} is {}, expected a string", kMetadataKey,
                                              std::string_view(key), json::KindName(text))));
    TESSERA_RETURN_IF_ERROR(
        metadata.Add(std::string(key), std::string(std::string_view(text.as_string()))));
  }
  return metadata;
}

// Sorts by offset and demands that the ranges follow one another from 0 to `data_bytes`.
Status CheckCoverage(std::vector<ParameterEntry>& entries, uint64_t data_bytes) {
  std::ranges::stable_sort(entries, [](const ParameterEntry& a, const ParameterEntry& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  });
  uint64_t end = 0;
  for (const ParameterEntry& entry : entries) {
    if (entry.offset != end)
      return InvalidArgument(fmt::format(
          "tensor {}: data_offsets begin at {}, expected {}, where the data before it ends ({})",
          entry.name, entry.offset, end, entry.offset < end ? "overlap" : "hole"));
    end = entry.offset + entry.bytes;  // Cannot overflow: it was read as one number.
    if (end > data_bytes)
      return DataLoss(fmt::format(
          "tensor {}: data_offsets end at {}, but the file has {} data bytes; it is cut "
          "short: fetch it again",
          entry.name, end, data_bytes));
  }
  if (end != data_bytes)
    return InvalidArgument(fmt::format(
        "the tensors end at data byte {}, but the file has {} data bytes", end, data_bytes));
  return {};
}

Result<ParameterIndex> ParseUnnamed(SourceFile file) {
  uint64_t data_begin = 0;
  TESSERA_ASSIGN_OR_RETURN(const json::Object header, ReadHeader(file.bytes, &data_begin));
  TESSERA_ASSIGN_OR_RETURN(file.metadata, ReadMetadata(header));
  const uint64_t data_bytes = file.bytes.size() - data_begin;
  std::vector<ParameterEntry> entries;
  entries.reserve(header.size());
  for (const auto& [key, value] : header) {
    const std::string_view name = key;
    if (name == kMetadataKey) continue;
    if (name.size() > kMaxTensorNameBytes)
      return Fail(
          ResourceExhausted(fmt::format("a tensor name has {} bytes, more than the limit of {}",
                                        name.size(), kMaxTensorNameBytes)));
    auto entry = ReadTensor(name, value);
    if (!entry.has_value()) return Fail(entry.error().WithContext(fmt::format("tensor {}", name)));
    entries.push_back(*std::move(entry));
  }
  TESSERA_RETURN_IF_ERROR(CheckCoverage(entries, data_bytes));
  ParameterIndex index;
  const uint32_t file_index = index.AddFile(std::move(file));
  for (ParameterEntry& entry : entries) {
    entry.file = file_index;
    entry.offset += data_begin;
    TESSERA_RETURN_IF_ERROR(index.Add(std::move(entry)));
  }
  return index;
}

}  // namespace

Result<ParameterIndex> Parse(ByteSpan bytes, const std::filesystem::path& path) {
  return ParseNamed(ParseUnnamed, FromBytes(Format::kSafetensors, bytes, path));
}

Result<ParameterIndex> Open(std::shared_ptr<const MappedFile> mapping) {
  return ParseNamed(ParseUnnamed, FromMapping(Format::kSafetensors, std::move(mapping)));
}

}  // namespace tessera::formats::safetensors
