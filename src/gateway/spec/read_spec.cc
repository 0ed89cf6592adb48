// SPDX-License-Identifier: Apache-2.0
#include "gateway/spec/read_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "gateway/limits.h"
#include "gateway/spec/assign_field.h"
#include "gateway/spec/brief.h"
#include "gateway/spec/field_table.h"

namespace tessera::gateway {
namespace {

constexpr std::string_view kClear = "clear";
constexpr std::array<std::string_view, 6> kClearable = {"quantize",
                                                        "checkpoint_path",
                                                        "chat_template_override",
                                                        "default_callback_url",
                                                        "default_callback_auth",
                                                        "billing_tags"};
// Of an update alone; there is nothing to recreate here that a changed field does not recreate.
constexpr size_t kUnknownFieldsNamed = 16;  // Of a body with a thousand the rest is counted.
constexpr std::string_view kForce = "force_bundle_recreation";

bool IsAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// Kubernetes: alphanumeric ends, "-_." inside, at most 63.
bool IsLabelText(std::string_view text) {
  if (text.size() > kLabelBytesMax) return false;
  if (text.empty()) return true;
  if (!IsAlphanumeric(text.front()) || !IsAlphanumeric(text.back())) return false;
  return std::ranges::all_of(
      text, [](char c) { return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

ApiError Refuse(std::string text) {
  return {.status = 400, .text = std::move(text)};
}

std::expected<void, ApiError> CheckLabels(const json::Object& labels) {
  if (labels.size() > kLabelsMax)
    return std::unexpected(Refuse(
        fmt::format("labels: {} are too many, at most {} are allowed", labels.size(), kLabelsMax)));
  for (const auto& member : labels) {
    const std::string_view key = member.key();
    if (key == "user_id" || key == "endpoint_name")
      return std::unexpected(
          Refuse(fmt::format("labels: '{}' is reserved, use another name", key)));
    if (key.empty() || !IsLabelText(key))
      return std::unexpected(Refuse(fmt::format(
          "labels: a name must be 1 to 63 letters, digits, '-', '_' or '.', and begin and end with "
          "a letter or digit")));
    const auto* value = member.value().if_string();
    if (value == nullptr || !IsLabelText(*value))
      return std::unexpected(Refuse(fmt::format(
          "labels: the value of '{}' must be a text of at most 63 letters, digits, '-', '_' or "
          "'.' that begins and ends with a letter or digit",
          key)));
  }
  return {};
}

std::expected<void, ApiError> CheckMetadata(const json::Object& metadata) {
  for (const std::string_view key : {"_llm", "_CONVERTED_FROM_ARTIFACT_LIKE"})
    if (metadata.contains(key))
      return std::unexpected(Refuse(fmt::format("metadata: '{}' is reserved", key)));
  if (json::Serialize(metadata).size() > kMetadataBytesMax)
    return std::unexpected(
        Refuse(fmt::format("metadata: more than {} bytes as JSON", kMetadataBytesMax)));
  return {};
}

std::expected<void, ApiError> CheckCallbackAuth(const json::Value& auth) {
  if (auth.is_null()) return {};
  const json::Object& object = auth.get_object();
  const auto text = [&](std::string_view key) {
    const json::Value* value = json::Find(object, key);
    return value != nullptr && value->is_string();
  };
  const json::Value* kind = json::Find(object, "kind");
  const auto* word = kind == nullptr ? nullptr : kind->if_string();
  if (word != nullptr && *word == "basic" && text("username") && text("password")) return {};
  if (word != nullptr && *word == "mtls" && text("cert") && text("key")) return {};
  return std::unexpected(
      Refuse("default_callback_auth: expected {kind: basic, username, password} or {kind: mtls, "
             "cert, key}"));
}

/// What holds between fields.
std::expected<void, ApiError> CheckMeaning(const EndpointSpec& spec) {
  if (!IsEndpointName(spec.name))
    return std::unexpected(ApiError{
        .status = 422,
        .fields = {{"string_pattern_mismatch",
                    {"body", "name"},
                    "String should be 1 to 63 of a-z, 0-9 and '-', with a letter or digit first "
                    "and last",
                    json::Value(spec.name)}}});
  if (spec.min_workers > spec.max_workers)
    return std::unexpected(Refuse(fmt::format("min_workers {} is more than max_workers {}",
                                              spec.min_workers, spec.max_workers)));
  if (const int64_t gpus = spec.resources.gpus.value_or(0); gpus > 0 && spec.num_shards != gpus)
    return std::unexpected(Refuse(
        fmt::format("num_shards {} and gpus {} must be the same number", spec.num_shards, gpus)));
  if (spec.endpoint_type == "async")
    return std::unexpected(
        Refuse("endpoint_type: async is not offered for models; streaming serves all calls, and "
               "batch completions are for work that can wait"));
  for (const auto& check : {CheckLabels(spec.labels), CheckMetadata(spec.metadata),
                            CheckCallbackAuth(spec.default_callback_auth)})
    if (!check.has_value()) return check;
  return {};
}

/// Type and range of every member.
ApiError CheckMembers(const json::Object& body, bool is_create) {
  ApiError error{.status = 422};
  for (const auto& member : body) {
    const Field* field = FindField(member.key());
    if (field != nullptr && !member.value().is_null())
      CheckField(*field, member.value(), &error.fields);
  }
  if (!is_create) return error;
  for (const std::string_view name :
       {"name", "model_name", "min_workers", "max_workers", "per_worker"})
    if (json::Find(body, name) == nullptr)
      error.fields.push_back(
          {"missing", {"body", std::string(name)}, "Field required", json::Value()});
  return error;
}

void AssignMembers(const json::Object& body, AskedSpec* asked) {
  size_t unknown = 0;
  for (const auto& member : body) {
    const std::string_view name = member.key();
    if (member.value().is_null() || name == kClear || name == kForce) continue;
    const Field* field = FindField(name);
    if (field == nullptr) {
      if (++unknown <= kUnknownFieldsNamed)
        asked->warnings.push_back(fmt::format("{}: no such field, ignored", Brief(name, 64)));
      continue;
    }
    AssignField(*field, member.value(), &asked->spec);
  }
  if (unknown > kUnknownFieldsNamed)
    asked->warnings.push_back(
        fmt::format("{} more fields: no such fields, ignored", unknown - kUnknownFieldsNamed));
  if (asked->spec.endpoint_type == "sync") {
    asked->spec.endpoint_type = "streaming";
    asked->warnings.emplace_back("endpoint_type: taken as streaming, which serves sync calls too");
  }
}

std::expected<void, ApiError> Clear(const json::Object& body, EndpointSpec* spec) {
  const json::Value* names = json::Find(body, kClear);
  if (names == nullptr) return {};
  const auto* list = names->if_array();
  for (const json::Value& name : list == nullptr ? json::Array{json::Value()} : *list) {
    const auto* text = name.if_string();
    const auto* known =
        text == nullptr ? kClearable.end() : std::ranges::find(kClearable, std::string_view(*text));
    if (known == kClearable.end())
      return std::unexpected(Refuse(
          fmt::format("clear: expected a list of names out of {}", fmt::join(kClearable, ", "))));
    AssignField(*FindField(*known), json::Value(), spec);
  }
  return {};
}

std::expected<void, ApiError> CheckFixed(const EndpointSpec& before, const EndpointSpec& after) {
  if (before.name != after.name)
    return std::unexpected(Refuse("name: cannot be changed; create another endpoint"));
  if (before.endpoint_type != after.endpoint_type)
    return std::unexpected(Refuse("endpoint_type: cannot be changed; create another endpoint"));
  if (before.resources.nodes_per_worker != after.resources.nodes_per_worker)
    return std::unexpected(Refuse("nodes_per_worker: cannot be changed; create another endpoint"));
  return {};
}

}  // namespace

bool IsEndpointName(std::string_view text) {
  if (text.empty() || text.size() > kNameBytesMax) return false;
  if (text.front() == '-' || text.back() == '-') return false;
  return std::ranges::all_of(
      text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

ApiResult<AskedSpec> ReadCreate(const json::Object& body) {
  if (ApiError error = CheckMembers(body, true); !error.fields.empty())
    return std::unexpected(std::move(error));
  AskedSpec asked;
  AssignMembers(body, &asked);
  if (auto meaning = CheckMeaning(asked.spec); !meaning.has_value())
    return std::unexpected(std::move(meaning).error());
  return asked;
}

ApiResult<AskedSpec> ReadUpdate(const EndpointSpec& before, const json::Object& body) {
  if (ApiError error = CheckMembers(body, false); !error.fields.empty())
    return std::unexpected(std::move(error));
  AskedSpec asked{.spec = before, .warnings = {}};
  if (auto cleared = Clear(body, &asked.spec); !cleared.has_value())
    return std::unexpected(std::move(cleared).error());
  AssignMembers(body, &asked);
  if (auto fixed = CheckFixed(before, asked.spec); !fixed.has_value())
    return std::unexpected(std::move(fixed).error());
  if (auto meaning = CheckMeaning(asked.spec); !meaning.has_value())
    return std::unexpected(std::move(meaning).error());
  return asked;
}

Result<EndpointSpec> ReadSpec(const json::Object& stored) {
  json::Object body = stored;
  if (const json::Value* engine = json::Find(stored, "engine");
      engine != nullptr && engine->is_object())
    for (const auto& member : engine->get_object()) body[member.key()] = member.value();
  body.erase("engine");
  auto asked = ReadCreate(body);
  if (!asked.has_value()) return Fail(DataLoss("stored endpoint: " + ErrorBody(asked.error())));
  return std::move(asked->spec);
}

}  // namespace tessera::gateway
