// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/metadata_writer.h"

#include "formats/gguf/value_type.h"

namespace tessera::formats::gguf {
namespace {

template <class T>
constexpr ValueType TypeOf() {
  if constexpr (std::is_same_v<T, bool>) return ValueType::kBool;
  if constexpr (std::is_same_v<T, uint8_t>) return ValueType::kU8;
  if constexpr (std::is_same_v<T, int8_t>) return ValueType::kI8;
  if constexpr (std::is_same_v<T, uint16_t>) return ValueType::kU16;
  if constexpr (std::is_same_v<T, int16_t>) return ValueType::kI16;
  if constexpr (std::is_same_v<T, uint32_t>) return ValueType::kU32;
  if constexpr (std::is_same_v<T, int32_t>) return ValueType::kI32;
  if constexpr (std::is_same_v<T, uint64_t>) return ValueType::kU64;
  if constexpr (std::is_same_v<T, int64_t>) return ValueType::kI64;
  if constexpr (std::is_same_v<T, float>) return ValueType::kF32;
  if constexpr (std::is_same_v<T, double>) return ValueType::kF64;
  if constexpr (std::is_same_v<T, std::string>) return ValueType::kText;
  return ValueType::kArray;
}

void WriteType(ByteWriter& out, ValueType type) {
  out.Write(static_cast<uint32_t>(type));
}

template <class T>
void WriteBare(ByteWriter& out, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    out.Write(static_cast<uint8_t>(value ? 1 : 0));
  } else if constexpr (std::is_arithmetic_v<T>) {
    out.Write(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    WriteString(out, value);
  } else if constexpr (std::is_same_v<T, NestedArray>) {
    std::visit([&](const auto& inner) { WriteBare(out, inner); }, value.value);
  } else {
    using Element = typename T::value_type;
    WriteType(out, TypeOf<Element>());
    out.Write(static_cast<uint64_t>(value.size()));
    for (const auto& element : value) WriteBare<Element>(out, element);
  }
}

}  // namespace

void WriteString(ByteWriter& out, std::string_view text) {
  out.Write(static_cast<uint64_t>(text.size()));
  out.WriteText(text);
}

void WriteMetadata(ByteWriter& out, const Metadata& metadata) {
  for (const auto& [key, value] : metadata.items()) {
    WriteString(out, key);
    std::visit(
        [&]<class T>(const T& held) {
          WriteType(out, TypeOf<T>());
          WriteBare(out, held);
        },
        value);
  }
}

}  // namespace tessera::formats::gguf
