// SPDX-License-Identifier: Apache-2.0
#include "access/key_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "access/limits.h"
#include "base/file.h"

namespace tessera::access {
namespace {

constexpr std::array<std::string_view, 8> kMembers = {"name", "hash", "scopes",      "priority",
                                                      "rpm",  "tpm",  "concurrency", "expires"};
constexpr std::string_view kHashPrefix = "sha256:";

Status CheckMembers(const json::Object& entry) {
  for (const auto& [name, value] : entry)
    if (std::ranges::find(kMembers, std::string_view(name)) == kMembers.end())
      return InvalidArgument(fmt::format("unknown member '{:.64}', expected {}",
                                         std::string_view(name), fmt::join(kMembers, ", ")));
  return {};
}

/// The digest behind "sha256:"; the value is in no error.
Result<std::string> ReadHash(const json::Object& entry) {
  const json::Value* value = json::Find(entry, "hash");
  const auto wrong = [] {
    return Fail(
        InvalidArgument("hash: expected \"sha256:\" and 64 lower-case hexadecimal digits, as "
                        "`tessera key` prints it (the value is not shown, as it may be a key)"));
  };
  if (value == nullptr || !value->is_string()) return wrong();
  std::string_view text = value->get_string();
  if (!text.starts_with(kHashPrefix)) return wrong();
  text.remove_prefix(kHashPrefix.size());
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.size() != 64 || !std::ranges::all_of(text, is_digit)) return wrong();
  if (text == DigestOf("")) return Fail(InvalidArgument("hash: this is the hash of an empty key"));
  return std::string(text);
}

Result<unsigned> ReadScopes(const json::Object& entry) {
  const json::Value* value = json::Find(entry, "scopes");
  if (value == nullptr) return ScopeBit(Scope::kInference);
  const auto wrong = [] {
    return Fail(InvalidArgument("scopes: expected a list of inference, metrics, admin"));
  };
  if (!value->is_array() || value->get_array().empty()) return wrong();
  unsigned scopes = 0;
  for (const json::Value& word : value->get_array()) {
    if (!word.is_string()) return wrong();
    const auto scope = ScopeNamed(word.get_string());
    if (!scope.has_value())
      return Fail(
          InvalidArgument(fmt::format("scopes: '{:.64}' is none, expected inference, metrics or "
                                      "admin",
                                      std::string_view(word.get_string()))));
    if ((scopes & ScopeBit(*scope)) != 0)
      return Fail(InvalidArgument(fmt::format("scopes: {} is there twice", ScopeName(*scope))));
    scopes |= ScopeBit(*scope);
  }
  return scopes;
}

Result<int64_t> ReadNumber(const json::Object& entry, std::string_view name, int64_t low,
                           int64_t high, int64_t fallback) {
  if (json::Find(entry, name) == nullptr) return fallback;
  TESSERA_ASSIGN_OR_RETURN(const int64_t value, json::NeedInt(entry, name));
  if (value < low || value > high)
    return Fail(
        InvalidArgument(fmt::format("{}: is {}, expected {} to {}", name, value, low, high)));
  return value;
}

Result<std::optional<int64_t>> ReadExpiry(const json::Object& entry) {
  if (json::Find(entry, "expires") == nullptr) return std::nullopt;
  TESSERA_ASSIGN_OR_RETURN(const std::string text, json::NeedString(entry, "expires"));
  const auto time = ParseUtcTime(text);
  if (!time.has_value())
    return Fail(
        InvalidArgument(fmt::format("expires: is '{:.64}', expected 2027-01-31 or "
                                    "2027-01-31T12:00:00Z (UTC)",
                                    text)));
  return time;
}

Result<ApiKey> ReadEntry(const json::Value& value) {
  const json::Object* entry = value.if_object();
  if (entry == nullptr)
    return Fail(
        InvalidArgument(fmt::format("is of type {}, expected an object", json::KindName(value))));
  TESSERA_RETURN_IF_ERROR(CheckMembers(*entry));
  ApiKey key;
  TESSERA_ASSIGN_OR_RETURN(key.name, json::NeedString(*entry, "name"));
  TESSERA_RETURN_IF_ERROR(CheckKeyName(key.name).WithContext("name"));
  TESSERA_ASSIGN_OR_RETURN(key.digest, ReadHash(*entry));
  TESSERA_ASSIGN_OR_RETURN(key.scopes, ReadScopes(*entry));
  TESSERA_ASSIGN_OR_RETURN(const int64_t priority,
                           ReadNumber(*entry, "priority", -kPriorityMax, kPriorityMax, 0));
  key.priority = static_cast<int32_t>(priority);
  TESSERA_ASSIGN_OR_RETURN(key.limits.requests_per_minute,
                           ReadNumber(*entry, "rpm", 1, kKeyRateMax, 0));
  TESSERA_ASSIGN_OR_RETURN(key.limits.tokens_per_minute,
                           ReadNumber(*entry, "tpm", 1, kKeyRateMax, 0));
  TESSERA_ASSIGN_OR_RETURN(key.limits.concurrency,
                           ReadNumber(*entry, "concurrency", 1, kKeyConcurrencyMax, 0));
  TESSERA_ASSIGN_OR_RETURN(key.expires, ReadExpiry(*entry));
  return key;
}

}  // namespace

Result<std::vector<ApiKey>> ParseKeyFile(std::string_view text) {
  const json::Limits limits{.max_bytes = kKeyFileBytesMax, .max_depth = 4, .max_keys = 64};
  TESSERA_ASSIGN_OR_RETURN(const json::Value value, json::Parse(text, limits, "JSON"));
  const json::Object* file = value.if_object();
  const json::Value* list = file == nullptr ? nullptr : json::Find(*file, "keys");
  if (list == nullptr || !list->is_array())
    return Fail(InvalidArgument("expected an object {\"keys\": [...]}"));
  for (const auto& [name, member] : *file)
    if (name != "keys")
      return Fail(InvalidArgument(
          fmt::format("unknown member '{:.64}', expected keys", std::string_view(name))));
  const json::Array& entries = list->get_array();
  if (entries.size() > kKeysMax)
    return Fail(ResourceExhausted(
        fmt::format("{} keys are more than the limit of {}", entries.size(), kKeysMax)));
  std::vector<ApiKey> keys;
  for (size_t i = 0; i < entries.size(); ++i) {
    auto key = ReadEntry(entries[i]);
    if (!key.has_value()) return Fail(key.error().WithContext(fmt::format("keys[{}]", i)));
    keys.push_back(*std::move(key));
  }
  TESSERA_RETURN_IF_ERROR(CheckUnique(keys));
  return keys;
}

Result<std::vector<ApiKey>> ReadKeyFile(const std::filesystem::path& path) {
  TESSERA_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kKeyFileBytesMax));
  auto keys = ParseKeyFile(text);
  if (!keys.has_value()) return Fail(keys.error().WithContext(path.string()));
  return keys;
}

Status CheckUnique(const std::vector<ApiKey>& keys) {
  std::map<std::string_view, std::string_view> names;  // By digest.
  std::map<std::string_view, size_t> places;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (const auto [place, is_new] = places.try_emplace(keys[i].name, i); !is_new)
      return InvalidArgument(fmt::format("two keys are named {}; rename one", keys[i].name));
    if (const auto [other, is_new] = names.try_emplace(keys[i].digest, keys[i].name); !is_new)
      return InvalidArgument(
          fmt::format("{} and {} are the same key; take one away", other->second, keys[i].name));
  }
  return {};
}

Status CheckKeyName(std::string_view name) {
  const auto is_fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '@' || c == '-';
  };
  if (name.empty() || name.size() > kKeyNameBytesMax || !std::ranges::all_of(name, is_fine))
    return InvalidArgument(
        fmt::format("expected 1 to {} letters, digits, '.', '_', '@' and '-'", kKeyNameBytesMax));
  return {};
}

json::Object KeyEntry(const ApiKey& key) {
  json::Object entry{{"name", key.name}, {"hash", std::string(kHashPrefix) + key.digest}};
  json::Array scopes;
  for (int i = 0; i < kScopeCount; ++i)
    if (key.Has(static_cast<Scope>(i))) scopes.emplace_back(ScopeName(static_cast<Scope>(i)));
  entry["scopes"] = std::move(scopes);
  if (key.priority.value_or(0) != 0) entry["priority"] = *key.priority;
  if (key.limits.requests_per_minute > 0) entry["rpm"] = key.limits.requests_per_minute;
  if (key.limits.tokens_per_minute > 0) entry["tpm"] = key.limits.tokens_per_minute;
  if (key.limits.concurrency > 0) entry["concurrency"] = key.limits.concurrency;
  if (key.expires.has_value()) entry["expires"] = FormatUtcTime(*key.expires);
  return entry;
}

}  // namespace tessera::access
