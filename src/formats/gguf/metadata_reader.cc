// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/metadata_reader.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "formats/gguf/value_type.h"
#include "formats/limits.h"

namespace tessera::formats::gguf {
namespace {

// Bytes of the smallest pair: key length, one character, type, one-byte value.
constexpr uint64_t kMinPairBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

// Fails unless `count` elements of at least `each` bytes can still be there.
Status CheckCount(const ByteReader& reader, uint64_t count, uint64_t each, std::string_view field) {
  if (count <= reader.remaining() / each) return {};
  return DataLoss(
      fmt::format("offset {}: {}: {} elements of at least {} bytes do not fit into the "
                  "remaining {} bytes",
                  reader.offset(), field, count, each, reader.remaining()));
}

Result<bool> ReadBool(ByteReader& reader, std::string_view field) {
  const uint64_t offset = reader.offset();
  TESSERA_ASSIGN_OR_RETURN(const auto byte, reader.Read<uint8_t>(field));
  if (byte > 1)
    return Fail(InvalidArgument(
        fmt::format("offset {}: {}: a bool is {}, expected 0 or 1", offset, field, byte)));
  return byte == 1;
}

template <class T>
Result<MetadataValue> ReadNumber(ByteReader& reader, std::string_view field) {
  TESSERA_ASSIGN_OR_RETURN(const T value, reader.Read<T>(field));
  return MetadataValue(value);
}

template <class T>
Result<MetadataValue> ReadNumbers(ByteReader& reader, uint64_t count, std::string_view field) {
  TESSERA_RETURN_IF_ERROR(CheckCount(reader, count, sizeof(T), field));
  TESSERA_ASSIGN_OR_RETURN(const ByteSpan raw, reader.ReadBytes(count * sizeof(T), field));
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), raw.data(), raw.size());
  return MetadataValue(std::move(values));
}

Result<MetadataValue> ReadBools(ByteReader& reader, uint64_t count, std::string_view field) {
  TESSERA_RETURN_IF_ERROR(CheckCount(reader, count, 1, field));
  std::vector<bool> values(count);
  for (uint64_t i = 0; i < count; ++i) {
    TESSERA_ASSIGN_OR_RETURN(const bool value, ReadBool(reader, field));
    values[i] = value;
  }
  return MetadataValue(std::move(values));
}

Result<MetadataValue> ReadTexts(ByteReader& reader, uint64_t count, std::string_view field) {
  TESSERA_RETURN_IF_ERROR(CheckCount(reader, count, sizeof(uint64_t), field));
  std::vector<std::string> values;
  values.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    TESSERA_ASSIGN_OR_RETURN(const std::string_view text, ReadString(reader, kNoLimit, field));
    values.emplace_back(text);
  }
  return MetadataValue(std::move(values));
}

Result<MetadataValue> ReadArray(ByteReader& reader, int depth, std::string_view field);

Result<MetadataValue> ReadArrays(ByteReader& reader, uint64_t count, int depth,
                                 std::string_view field) {
  // Every inner array starts with its type and count.
  TESSERA_RETURN_IF_ERROR(CheckCount(reader, count, 4 + 8, field));
  std::vector<NestedArray> values;
  values.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    TESSERA_ASSIGN_OR_RETURN(MetadataValue inner, ReadArray(reader, depth + 1, field));
    values.push_back({std::move(inner)});
  }
  return MetadataValue(std::move(values));
}

Status UnknownType(uint64_t offset, std::string_view field, uint32_t type) {
  return InvalidArgument(
      fmt::format("offset {}: {}: unknown value type {}, expected 0 to 12", offset, field, type));
}

Result<MetadataValue> ReadArray(ByteReader& reader, int depth, std::string_view field) {
  if (depth > kMaxGgufArrayDepth)
    return Fail(ResourceExhausted(fmt::format("offset {}: {}: arrays nest deeper than {}",
                                              reader.offset(), field, kMaxGgufArrayDepth)));
  const uint64_t offset = reader.offset();
  TESSERA_ASSIGN_OR_RETURN(const auto type, reader.Read<uint32_t>(field));
  TESSERA_ASSIGN_OR_RETURN(const auto count, reader.Read<uint64_t>(field));
  switch (static_cast<ValueType>(type)) {
    case ValueType::kU8:
      return ReadNumbers<uint8_t>(reader, count, field);
    case ValueType::kI8:
      return ReadNumbers<int8_t>(reader, count, field);
    case ValueType::kU16:
      return ReadNumbers<uint16_t>(reader, count, field);
    case ValueType::kI16:
      return ReadNumbers<int16_t>(reader, count, field);
    case ValueType::kU32:
      return ReadNumbers<uint32_t>(reader, count, field);
    case ValueType::kI32:
      return ReadNumbers<int32_t>(reader, count, field);
    case ValueType::kU64:
      return ReadNumbers<uint64_t>(reader, count, field);
    case ValueType::kI64:
      return ReadNumbers<int64_t>(reader, count, field);
    case ValueType::kF32:
      return ReadNumbers<float>(reader, count, field);
    case ValueType::kF64:
      return ReadNumbers<double>(reader, count, field);
    case ValueType::kBool:
      return ReadBools(reader, count, field);
    case ValueType::kText:
      return ReadTexts(reader, count, field);
    case ValueType::kArray:
      return ReadArrays(reader, count, depth, field);
  }
  return Fail(UnknownType(offset, field, type));
}

Result<MetadataValue> ReadValue(ByteReader& reader, std::string_view field) {
  const uint64_t offset = reader.offset();
  TESSERA_ASSIGN_OR_RETURN(const auto type, reader.Read<uint32_t>(field));
  switch (static_cast<ValueType>(type)) {
    case ValueType::kU8:
      return ReadNumber<uint8_t>(reader, field);
    case ValueType::kI8:
      return ReadNumber<int8_t>(reader, field);
    case ValueType::kU16:
      return ReadNumber<uint16_t>(reader, field);
    case ValueType::kI16:
      return ReadNumber<int16_t>(reader, field);
    case ValueType::kU32:
      return ReadNumber<uint32_t>(reader, field);
    case ValueType::kI32:
      return ReadNumber<int32_t>(reader, field);
    case ValueType::kU64:
      return ReadNumber<uint64_t>(reader, field);
    case ValueType::kI64:
      return ReadNumber<int64_t>(reader, field);
    case ValueType::kF32:
      return ReadNumber<float>(reader, field);
    case ValueType::kF64:
      return ReadNumber<double>(reader, field);
    case ValueType::kBool: {
      TESSERA_ASSIGN_OR_RETURN(const bool value, ReadBool(reader, field));
      return MetadataValue(value);
    }
    case ValueType::kText: {
      TESSERA_ASSIGN_OR_RETURN(const std::string_view text, ReadString(reader, kNoLimit, field));
      return MetadataValue(std::string(text));
    }
    case ValueType::kArray:
      return ReadArray(reader, 1, field);
  }
  return Fail(UnknownType(offset, field, type));
}

}  // namespace

Result<std::string_view> ReadString(ByteReader& reader, uint64_t limit, std::string_view field) {
  const uint64_t offset = reader.offset();
  TESSERA_ASSIGN_OR_RETURN(const auto size, reader.Read<uint64_t>(field));
  if (size > reader.remaining())
    return Fail(DataLoss(fmt::format("offset {}: {}: text of {} bytes, but only {} are left",
                                     offset, field, size, reader.remaining())));
  if (size > limit)
    return Fail(ResourceExhausted(fmt::format(
        "offset {}: {}: text of {} bytes, more than the limit of {}", offset, field, size, limit)));
  TESSERA_ASSIGN_OR_RETURN(const ByteSpan bytes, reader.ReadBytes(size, field));
  return AsText(bytes);
}

Result<Metadata> ReadMetadata(ByteReader& reader, uint64_t count) {
  if (count > kMaxGgufMetadata)
    return Fail(ResourceExhausted(fmt::format(
        "offset 16: metadata count is {}, more than the limit of {}", count, kMaxGgufMetadata)));
  TESSERA_RETURN_IF_ERROR(CheckCount(reader, count, kMinPairBytes, "metadata"));
  Metadata metadata;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t offset = reader.offset();
    const std::string what = fmt::format("metadata key {} of {}", i + 1, count);
    TESSERA_ASSIGN_OR_RETURN(const std::string_view key,
                             ReadString(reader, kMaxGgufKeyBytes, what));
    if (key.empty())
      return Fail(InvalidArgument(fmt::format("offset {}: {} is empty", offset, what)));
    TESSERA_ASSIGN_OR_RETURN(MetadataValue value,
                             ReadValue(reader, fmt::format("metadata {}", key)));
    Status added = metadata.Add(std::string(key), std::move(value));
    if (!added.ok())
      return Fail(InvalidArgument(fmt::format("offset {}: {}", offset, added.message())));
  }
  return metadata;
}

}  // namespace tessera::formats::gguf
