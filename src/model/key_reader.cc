// SPDX-License-Identifier: Apache-2.0
#include "model/key_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tessera::model {
namespace {

/// Whether a number is the one that `text` spells, whichever of 1 and 1.0 the file has.
bool NumberEquals(const json::Value& member, std::string_view text) {
  double expected = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), expected);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if (member.is_double()) return member.get_double() == expected;
  return member.is_int64() && static_cast<double>(member.get_int64()) == expected;
}

}  // namespace

const json::Value* KeyReader::Look(std::string_view key) {
  asked_.emplace(key);
  return json::Find(object_, key);
}

template <class T>
Result<T> KeyReader::Named(Result<T> result) const {
  if (result.has_value() || prefix_.empty()) return result;
  return Fail(std::move(result).error().WithContext(prefix_.substr(0, prefix_.size() - 1)));
}

Result<int64_t> KeyReader::NeedInt(std::string_view key) {
  asked_.emplace(key);
  return Named(json::NeedInt(object_, key));
}
Result<int64_t> KeyReader::Int(std::string_view key, int64_t fallback) {
  asked_.emplace(key);
  return Named(json::GetInt(object_, key, fallback));
}
Result<double> KeyReader::NeedDouble(std::string_view key) {
  asked_.emplace(key);
  return Named(json::NeedDouble(object_, key));
}
Result<double> KeyReader::Double(std::string_view key, double fallback) {
  asked_.emplace(key);
  return Named(json::GetDouble(object_, key, fallback));
}
Result<bool> KeyReader::Bool(std::string_view key, bool fallback) {
  asked_.emplace(key);
  return Named(json::GetBool(object_, key, fallback));
}
Result<std::string> KeyReader::String(std::string_view key, std::string_view fallback) {
  asked_.emplace(key);
  return Named(json::GetString(object_, key, std::string(fallback)));
}
Result<std::string> KeyReader::NeedString(std::string_view key) {
  asked_.emplace(key);
  return Named(json::NeedString(object_, key));
}

Result<const json::Object*> KeyReader::ObjectAt(std::string_view key) {
  const json::Value* value = Look(key);
  if (value == nullptr) return nullptr;
  if (const json::Object* object = value->if_object()) return object;
  return Fail(InvalidArgument(
      fmt::format("'{}{}' is {}, expected an object", prefix_, key, json::KindName(*value))));
}

Result<std::vector<std::string>> KeyReader::Strings(std::string_view key) {
  const json::Value* value = Look(key);
  std::vector<std::string> strings;
  if (value == nullptr) return strings;
  const json::Array* array = value->if_array();
  if (array == nullptr) {
    return Fail(InvalidArgument(fmt::format("'{}{}' is {}, expected an array of strings", prefix_,
                                            key, json::KindName(*value))));
  }
  for (const json::Value& item : *array) {
    if (!item.is_string()) {
      return Fail(InvalidArgument(
          fmt::format("'{}{}' holds {}, expected strings", prefix_, key, json::KindName(item))));
    }
    strings.emplace_back(item.get_string());
  }
  return strings;
}

Result<std::vector<int64_t>> KeyReader::IntOrInts(std::string_view key, size_t max_count) {
  const json::Value* value = Look(key);
  std::vector<int64_t> ints;
  if (value == nullptr) return ints;
  const auto add = [&](const json::Value& item) -> Status {
    if (!item.is_int64()) {
      return InvalidArgument(fmt::format("'{}{}' is or holds {}, expected integers", prefix_, key,
                                         json::KindName(item)));
    }
    ints.push_back(item.get_int64());
    return {};
  };
  const json::Array* array = value->if_array();
  if (array == nullptr) {
    TESSERA_RETURN_IF_ERROR(add(*value));
    return ints;
  }
  if (array->size() > max_count) {
    return Fail(ResourceExhausted(
        fmt::format("'{}{}' has {} entries, at most {}", prefix_, key, array->size(), max_count)));
  }
  for (const json::Value& item : *array) TESSERA_RETURN_IF_ERROR(add(item));
  return ints;
}

bool KeyReader::Has(std::string_view key) {
  return Look(key) != nullptr;
}

bool KeyReader::IsNull(std::string_view key) {
  return Look(key) == nullptr && object_.if_contains(key) != nullptr;
}

Status KeyReader::MustEqual(std::string_view key, std::string_view value, std::string_view why) {
  const json::Value* member = Look(key);
  if (member == nullptr) return {};
  const std::string text = json::Serialize(*member);
  if (text == value || NumberEquals(*member, value)) return {};
  constexpr size_t kShown = 60;
  return Unimplemented(fmt::format("'{}{}' is {}; only {} is supported: {}", prefix_, key,
                                   text.substr(0, kShown), value, why));
}

Status KeyReader::RefuseOthers(std::span<const std::string_view> harmless) const {
  std::string unknown;
  for (const auto& [key, value] : object_) {
    const std::string_view name(key.data(), key.size());
    const bool known = value.is_null() || asked_.contains(name) ||
                       std::find(harmless.begin(), harmless.end(), name) != harmless.end();
    if (known) continue;
    if (!unknown.empty()) unknown += ", ";
    unknown += fmt::format("'{}{}'", prefix_, name);
  }
  if (unknown.empty()) return {};
  return Unimplemented(fmt::format(
      "unknown key {}: it may change what the model computes, so it is not ignored", unknown));
}

}  // namespace tessera::model
