// SPDX-License-Identifier: Apache-2.0
#include "bundle/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tessera::bundle {
namespace {

Status InRange(std::string_view path, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return InvalidArgument(
      fmt::format("\"{}\" is {}, expected a value in [{}, {}]", path, value, low, high));
}

}  // namespace

Result<Fields> Fields::Of(const json::Value& value, std::string path) {
  const json::Object* object = value.if_object();
  if (object == nullptr)
    return Fail(
        InvalidArgument(fmt::format("{} is {}, expected an object",
                                    path.empty() ? "the document" : path, json::KindName(value))));
  return Fields(object, std::move(path));
}

std::string Fields::PathOf(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

Status Fields::At(Status status) const {
  if (status.ok() || path_.empty()) return status;
  return std::move(status).WithContext(path_);
}

Status Fields::OnlyKnown(std::initializer_list<std::string_view> known) const {
  for (const auto& member : *object_) {
    const std::string_view key = member.key();
    if (std::find(known.begin(), known.end(), key) == known.end())
      return InvalidArgument(fmt::format("unknown key \"{:.100}\"", PathOf(key)));
  }
  return {};
}

Result<int64_t> Fields::Int(std::string_view key, int64_t low, int64_t high) const {
  Result<int64_t> value = json::NeedInt(*object_, key);
  if (!value.has_value()) return Fail(At(value.error()));
  TESSERA_RETURN_IF_ERROR(InRange(PathOf(key), *value, low, high));
  return value;
}

Result<int64_t> Fields::IntOr(std::string_view key, int64_t fallback, int64_t low,
                              int64_t high) const {
  if (!Has(key)) return fallback;
  return Int(key, low, high);
}

Result<std::string> Fields::Text(std::string_view key) const {
  Result<std::string> value = json::NeedString(*object_, key);
  if (!value.has_value()) return Fail(At(value.error()));
  return value;
}

Result<std::string> Fields::TextOr(std::string_view key, std::string fallback) const {
  if (!Has(key)) return fallback;
  return Text(key);
}

Result<double> Fields::Number(std::string_view key) const {
  Result<double> value = json::NeedDouble(*object_, key);
  if (!value.has_value()) return Fail(At(value.error()));
  if (!std::isfinite(*value))
    return Fail(InvalidArgument(fmt::format("\"{}\" is no finite number", PathOf(key))));
  return value;
}

Result<bool> Fields::BoolOr(std::string_view key, bool fallback) const {
  Result<bool> value = json::GetBool(*object_, key, fallback);
  if (!value.has_value()) return Fail(At(value.error()));
  return value;
}

Result<const json::Array*> Fields::ArrayOf(std::string_view key, uint64_t max) const {
  const json::Value* value = json::Find(*object_, key);
  if (value == nullptr) return nullptr;
  const json::Array* array = value->if_array();
  if (array == nullptr)
    return Fail(InvalidArgument(
        fmt::format("\"{}\" is {}, expected an array", PathOf(key), json::KindName(*value))));
  if (array->size() > max)
    return Fail(ResourceExhausted(
        fmt::format("\"{}\" has {} elements, more than {}", PathOf(key), array->size(), max)));
  return array;
}

Result<std::vector<int64_t>> Fields::Ints(std::string_view key, uint64_t max, int64_t low,
                                          int64_t high) const {
  TESSERA_ASSIGN_OR_RETURN(const json::Array* array, ArrayOf(key, max));
  std::vector<int64_t> values;
  if (array == nullptr) return values;
  for (const json::Value& element : *array) {
    const int64_t* value = element.if_int64();
    const std::string path = fmt::format("{}[{}]", PathOf(key), values.size());
    if (value == nullptr)
      return Fail(InvalidArgument(
          fmt::format("\"{}\" is {}, expected an integer", path, json::KindName(element))));
    TESSERA_RETURN_IF_ERROR(InRange(path, *value, low, high));
    values.push_back(*value);
  }
  return values;
}

Result<std::vector<std::string>> Fields::Texts(std::string_view key, uint64_t max) const {
  TESSERA_ASSIGN_OR_RETURN(const json::Array* array, ArrayOf(key, max));
  std::vector<std::string> values;
  if (array == nullptr) return values;
  for (const json::Value& element : *array) {
    const auto* text = element.if_string();
    if (text == nullptr)
      return Fail(InvalidArgument(fmt::format("\"{}[{}]\" is {}, expected a string", PathOf(key),
                                              values.size(), json::KindName(element))));
    values.emplace_back(*text);
  }
  return values;
}

Result<std::vector<Fields>> Fields::Objects(std::string_view key, uint64_t max) const {
  TESSERA_ASSIGN_OR_RETURN(const json::Array* array, ArrayOf(key, max));
  std::vector<Fields> objects;
  if (array == nullptr) return objects;
  for (const json::Value& element : *array) {
    TESSERA_ASSIGN_OR_RETURN(Fields fields,
                             Of(element, fmt::format("{}[{}]", PathOf(key), objects.size())));
    objects.push_back(std::move(fields));
  }
  return objects;
}

Result<Fields> Fields::Object(std::string_view key) const {
  const json::Value* value = json::Find(*object_, key);
  if (value == nullptr) return Fail(InvalidArgument(fmt::format("\"{}\" is missing", PathOf(key))));
  return Of(*value, PathOf(key));
}

}  // namespace tessera::bundle
