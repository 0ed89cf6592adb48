// SPDX-License-Identifier: Apache-2.0
#include "formats/metadata.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <type_traits>

namespace tessera::formats {
namespace {

// In the order of the variant's alternatives.
constexpr std::array<std::string_view, std::variant_size_v<MetadataValue>> kKindNames = {
    "bool",
    "u8",
    "i8",
    "u16",
    "i16",
    "u32",
    "i32",
    "u64",
    "i64",
    "f32",
    "f64",
    "text",
    "array of bool",
    "array of u8",
    "array of i8",
    "array of u16",
    "array of i16",
    "array of u32",
    "array of i32",
    "array of u64",
    "array of i64",
    "array of f32",
    "array of f64",
    "array of text",
    "array of arrays"};

template <class T>
constexpr bool kIsInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;

Status WrongKind(std::string_view key, const MetadataValue& value, std::string_view expected) {
  return InvalidArgument(
      fmt::format("metadata {} is {}, expected {}", key, KindName(value), expected));
}

template <class T>
Result<int64_t> Widen(std::string_view key, T value) {
  if constexpr (std::is_same_v<T, uint64_t>)
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return Fail(OutOfRange(fmt::format("metadata {} is {}, beyond 2^63 - 1", key, value)));
  return static_cast<int64_t>(value);
}

}  // namespace

std::string_view KindName(const MetadataValue& value) {
  return kKindNames[value.index()];
}

Status Metadata::Add(std::string key, MetadataValue value) {
  const auto [at, is_new] = by_key_.emplace(key, items_.size());
  if (!is_new)
    return AlreadyExists(fmt::format("metadata key {} occurs twice, expected once", key));
  items_.emplace_back(std::move(key), std::move(value));
  return {};
}

const MetadataValue* Metadata::Find(std::string_view key) const {
  const auto at = by_key_.find(key);
  return at == by_key_.end() ? nullptr : &items_[at->second].second;
}

Result<const MetadataValue*> Metadata::Need(std::string_view key) const {
  if (const MetadataValue* value = Find(key)) return value;
  return Fail(NotFound(fmt::format("metadata {} is missing", key)));
}

Result<int64_t> Metadata::Int(std::string_view key) const {
  TESSERA_ASSIGN_OR_RETURN(const MetadataValue* value, Need(key));
  return std::visit(
      [&]<class T>(const T& held) -> Result<int64_t> {
        if constexpr (kIsInteger<T>) {
          return Widen(key, held);
        } else {
          return Fail(WrongKind(key, *value, "an integer"));
        }
      },
      *value);
}

Result<double> Metadata::Number(std::string_view key) const {
  TESSERA_ASSIGN_OR_RETURN(const MetadataValue* value, Need(key));
  return std::visit(
      [&]<class T>(const T& held) -> Result<double> {
        if constexpr (kIsInteger<T> || std::is_floating_point_v<T>) {
          return static_cast<double>(held);
        } else {
          return Fail(WrongKind(key, *value, "a number"));
        }
      },
      *value);
}

Result<bool> Metadata::Bool(std::string_view key) const {
  TESSERA_ASSIGN_OR_RETURN(const MetadataValue* value, Need(key));
  if (const bool* held = std::get_if<bool>(value)) return *held;
  return Fail(WrongKind(key, *value, "bool"));
}

Result<std::string> Metadata::Text(std::string_view key) const {
  TESSERA_ASSIGN_OR_RETURN(const MetadataValue* value, Need(key));
  if (const auto* held = std::get_if<std::string>(value)) return *held;
  return Fail(WrongKind(key, *value, "text"));
}

const std::vector<std::string>* Metadata::Strings(std::string_view key) const {
  const MetadataValue* value = Find(key);
  return value == nullptr ? nullptr : std::get_if<std::vector<std::string>>(value);
}

const std::vector<float>* Metadata::Floats(std::string_view key) const {
  const MetadataValue* value = Find(key);
  return value == nullptr ? nullptr : std::get_if<std::vector<float>>(value);
}

Result<std::vector<int64_t>> Metadata::Ints(std::string_view key) const {
  TESSERA_ASSIGN_OR_RETURN(const MetadataValue* value, Need(key));
  return std::visit(
      [&]<class T>(const T& held) -> Result<std::vector<int64_t>> {
        if constexpr (requires { typename T::value_type; }) {
          if constexpr (kIsInteger<typename T::value_type> && !std::is_same_v<T, std::string>) {
            std::vector<int64_t> widened;
            widened.reserve(held.size());
            for (const auto element : held) {
              TESSERA_ASSIGN_OR_RETURN(const int64_t wide, Widen(key, element));
              widened.push_back(wide);
            }
            return widened;
          }
        }
        return Fail(WrongKind(key, *value, "an array of integers"));
      },
      *value);
}

}  // namespace tessera::formats
