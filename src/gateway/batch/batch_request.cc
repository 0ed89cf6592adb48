// SPDX-License-Identifier: Apache-2.0
#include "gateway/batch/batch_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "gateway/files/upload.h"
#include "gateway/limits.h"
#include "gateway/spec/brief.h"
#include "gateway/spec/field_table.h"

namespace tessera::gateway {
namespace {

using enum FieldKind;
constexpr std::string_view kNewFile = "files://";
constexpr std::array<std::string_view, 3> kTargets = {"/v1/chat/completions", "/v1/completions",
                                                      "/v1/embeddings"};

// clang-format off
constexpr Field kFields[] = {
    {"input_data_path", kText, FieldUse::kOptional, 1, 4096, "", "A path below the batch root, or the id of a file."},
    {"output_data_path", kText, FieldUse::kRequired, 1, 4096, "", "A path below the batch root, or files://NAME for a new file."},
    {"model_config", kObject, FieldUse::kRequired, 0, 0, "", "`model` and options of the endpoint."},
    {"labels", kObject, FieldUse::kOptional, 0, 0, "", "Of the temporary endpoint."},
    {"metadata", kObject, FieldUse::kOptional, 0, 0, "", "Texts that are kept and shown."},
    {"data_parallelism", kInteger, FieldUse::kOptional, 1, static_cast<double>(kBatchParallelismMax), "", "Workers."},
    {"max_runtime_sec", kInteger, FieldUse::kOptional, 1, static_cast<double>(kBatchRuntimeSecondsMax), "", "From its first row on."},
    {"priority", kText, FieldUse::kOptional, 0, 64, "", "high, normal, low or a whole number; larger ones go first."},
    {"cpus", kQuantity, FieldUse::kOptional, 0, 0, "", "Of the temporary endpoint, as the next ones."},
    {"memory", kQuantity, FieldUse::kOptional, 0, 0, "", ""},
    {"storage", kQuantity, FieldUse::kOptional, 0, 0, "", ""},
    {"gpus", kInteger, FieldUse::kOptional, 0, 64, "", ""},
    {"gpu_type", kAny, FieldUse::kOptional, 0, 0, "", ""},
    {"nodes_per_worker", kInteger, FieldUse::kOptional, 1, 64, "", ""},
    {"content", kAny, FieldUse::kOptional, 0, 0, "", "The rows."},
    {"tool_config", kAny, FieldUse::kOptional, 0, 0, "", "Not offered."},
};
// clang-format on
constexpr std::array<std::string_view, 6> kResources = {"cpus", "memory",   "storage",
                                                        "gpus", "gpu_type", "nodes_per_worker"};

std::unexpected<ApiError> Refuse(std::string text) {
  return std::unexpected(ApiError{.status = 400, .text = std::move(text)});
}

FieldError Missing(std::vector<std::string> loc) {
  return {"missing", std::move(loc), "Field required", json::Value()};
}

std::string TextOf(const json::Object& object, std::string_view key) {
  const json::Value* value = json::Find(object, key);
  const auto* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string() : std::string(*text);
}

int64_t NumberOf(const json::Object& object, std::string_view key, int64_t fallback) {
  const json::Value* value = json::Find(object, key);
  return value == nullptr ? fallback : static_cast<int64_t>(value->to_number<double>());
}

/// Types and ranges; unknown members become warnings.
ApiError CheckEnvelope(const json::Object& body, json::Array* warnings) {
  ApiError error{.status = 422};
  for (const Field& field : kFields) {
    const json::Value* value = json::Find(body, field.name);
    if (value != nullptr)
      CheckField(field, *value, &error.fields);
    else if (field.use == FieldUse::kRequired)
      error.fields.push_back(Missing({"body", std::string(field.name)}));
  }
  for (const auto& member : body)
    if (std::ranges::find(kFields, std::string_view(member.key()), &Field::name) ==
        std::end(kFields))
      warnings->push_back(
          json::Value(fmt::format("{}: no such field, ignored", Brief(member.key(), 64))));
  return error;
}

ApiResult<void> CheckPath(std::string_view name, std::string_view path) {
  const size_t colon = path.find("://");
  if (colon == std::string_view::npos || path.starts_with(kNewFile)) return {};
  return Refuse(fmt::format(
      "{}: {}:// is not read or written here; give a path below the batch root, or upload a file "
      "and give its id (output: files://NAME)",
      name, path.substr(0, std::min<size_t>(colon, 16))));
}

ApiResult<void> CheckMetadata(const json::Object& metadata) {
  const bool fits =
      metadata.size() <= kBatchMetadataMax && std::ranges::all_of(metadata, [](const auto& member) {
        const auto* text = member.value().if_string();
        return text != nullptr && text->size() <= 512 && member.key().size() <= 64;
      });
  if (!fits)
    return Refuse(fmt::format(
        "metadata: expected at most {} texts of at most 512 bytes, with names of at most 64",
        kBatchMetadataMax));
  return {};
}

/// What a temporary endpoint of it is created with.
json::Object EndpointBody(const json::Object& body, const json::Object& config,
                          const BatchRecord& record) {
  json::Object asked{{"name", kBatchEndpointName},
                     {"model_name", record.model},
                     {"min_workers", 1},
                     {"max_workers", record.data_parallelism},
                     {"per_worker", kBatchRowsPerWorker},
                     {"public_inference", false}};
  for (const auto& member : config) {
    const std::string_view key = member.key();
    // max_context_length is llm-engine's name; the roles of answers are the templates'.
    if (key == "model" || key == "response_role" || member.value().is_null()) continue;
    asked[key == "max_context_length" ? "max_model_len" : key] = member.value();
  }
  for (const std::string_view key : kResources)
    if (const json::Value* value = json::Find(body, key)) asked[key] = *value;
  json::Object labels;
  for (const json::Object* from : {&body, &config})
    if (const json::Value* value = json::Find(*from, "labels"); value && value->is_object())
      for (const auto& member : value->get_object()) labels[member.key()] = member.value();
  asked["labels"] = std::move(labels);
  return asked;
}

/// `loc` of an endpoint's field, as the caller wrote it.
void MoveToConfig(FieldError* error) {
  if (error->loc.size() < 2) return;
  if (error->loc[1] == "model_name") error->loc[1] = "model";
  if (error->loc[1] == "max_model_len") error->loc[1] = "max_context_length";
  if (std::ranges::find(kResources, error->loc[1]) == kResources.end())
    error->loc.insert(error->loc.begin() + 1, "model_config");
}

ApiResult<void> ReadConfig(const json::Object& body, const json::Object& config,
                           BatchRecord* record) {
  for (const auto& member : config)
    if (!member.value().is_null()) record->model_config[member.key()] = member.value();
  record->model = TextOf(config, "model");
  if (record->model.empty())
    return std::unexpected(
        ApiError{.status = 422, .fields = {Missing({"body", "model_config", "model"})}});
  if (json::Find(config, "response_role") != nullptr)
    record->warnings.push_back("response_role: the chat template names roles, ignored");
  record->endpoint_body = EndpointBody(body, config, *record);
  auto asked = ReadCreate(record->endpoint_body);
  if (!asked.has_value()) {
    ApiError error = std::move(asked).error();
    for (FieldError& field : error.fields) MoveToConfig(&field);
    return std::unexpected(std::move(error));
  }
  for (const std::string& warning : asked->warnings) record->warnings.push_back(warning.c_str());
  return {};
}

ApiResult<void> CheckMeaning(const json::Object& body, const BatchRecord& record,
                             BatchVersion version) {
  if (json::Find(body, "tool_config") != nullptr)
    return Refuse("tool_config: tools are not run here; leave it out");
  if (version == BatchVersion::kV1 && record.data_parallelism > 1)
    return Refuse("data_parallelism: this version takes 1; use /v2/batch-completions for more");
  if (record.input_path.empty() == (json::Find(body, "content") == nullptr))
    return Refuse("expected either input_data_path or content");
  if (auto path = CheckPath("input_data_path", record.input_path); !path.has_value()) return path;
  if (auto path = CheckPath("output_data_path", record.output_path); !path.has_value()) return path;
  if (!NewFileName(record.input_path).empty() || record.input_path == kNewFile)
    return Refuse("input_data_path: give the id of an uploaded file, file-...");
  if (record.output_path.starts_with(kNewFile)) {
    const std::string_view name = NewFileName(record.output_path);
    const auto base = BaseName(name);
    if (name.empty() || !base.has_value() || *base != name)
      return Refuse("output_data_path: after files:// a file's name is expected");
  }
  if (IsFileId(record.output_path))
    return Refuse("output_data_path: files do not change; files://NAME makes a new one");
  if (const auto rank = BatchRank(record.priority); !rank.has_value())
    return Refuse(rank.error().message());
  return CheckMetadata(record.metadata);
}

}  // namespace

bool IsFileId(std::string_view path) {
  return path.starts_with("file-") && !path.contains('/');
}

std::string_view NewFileName(std::string_view path) {
  return path.starts_with(kNewFile) ? path.substr(kNewFile.size()) : std::string_view();
}

ApiResult<BatchRecord> ReadBatchRequest(const json::Object& body, BatchVersion version) {
  BatchRecord record;
  if (ApiError error = CheckEnvelope(body, &record.warnings); !error.fields.empty())
    return std::unexpected(std::move(error));
  record.input_path = TextOf(body, "input_data_path");
  record.output_path = TextOf(body, "output_data_path");
  record.priority = TextOf(body, "priority");
  record.data_parallelism = NumberOf(body, "data_parallelism", record.data_parallelism);
  record.max_runtime_s = NumberOf(body, "max_runtime_sec", record.max_runtime_s);
  if (const json::Value* metadata = json::Find(body, "metadata"))
    record.metadata = metadata->get_object();
  if (auto meaning = CheckMeaning(body, record, version); !meaning.has_value())
    return std::unexpected(std::move(meaning).error());
  const json::Object& config = json::Find(body, "model_config")->get_object();
  if (auto read = ReadConfig(body, config, &record); !read.has_value())
    return std::unexpected(std::move(read).error());
  return record;
}

ApiResult<BatchRecord> ReadOpenAiBatch(const json::Object& body) {
  BatchRecord record;
  record.form = BatchForm::kLines;
  record.input_path = TextOf(body, "input_file_id");
  record.target = TextOf(body, "endpoint");
  if (!IsFileId(record.input_path))
    return Refuse("input_file_id: expected the id of an uploaded file");
  if (std::ranges::find(kTargets, record.target) == kTargets.end())
    return Refuse(fmt::format("endpoint: expected one of {}", fmt::join(kTargets, ", ")));
  if (TextOf(body, "completion_window") != "24h") return Refuse("completion_window: expected 24h");
  if (const json::Value* metadata = json::Find(body, "metadata")) {
    if (!metadata->is_object()) return Refuse("metadata: expected an object of texts");
    record.metadata = metadata->get_object();
  }
  if (auto metadata = CheckMetadata(record.metadata); !metadata.has_value())
    return std::unexpected(std::move(metadata).error());
  return record;
}

}  // namespace tessera::gateway
