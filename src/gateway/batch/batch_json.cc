// SPDX-License-Identifier: Apache-2.0
#include "gateway/batch/batch_json.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

namespace tessera::gateway {
namespace {

json::Value Time(int64_t unix_seconds) {
  if (unix_seconds == 0) return {};
  return json::Value(fmt::format("{:%Y-%m-%dT%H:%M:%S}+00:00",
                                 fmt::gmtime(static_cast<std::time_t>(unix_seconds))));
}

json::Value OrNull(const std::string& text) {
  return text.empty() ? json::Value() : json::Value(text);
}

json::Value OrNull(int64_t unix_seconds) {
  return unix_seconds == 0 ? json::Value() : json::Value(unix_seconds);
}

/// In OpenAI's words.
std::string_view OpenAiStatus(const BatchRecord& record) {
  if (record.is_expired) return "expired";
  if (!record.is_over() && record.is_cancelling) return "cancelling";
  switch (record.status) {
    case BatchStatus::kQueued:
      return "validating";
    case BatchStatus::kRunning:
      return "in_progress";
    default:
      return BatchStatusName(record.status);
  }
}

}  // namespace

json::Object BatchJobJson(const BatchRecord& record) {
  const int64_t done = record.completed + record.failed;
  json::Object job{{"job_id", record.id},
                   {"input_data_path", OrNull(record.input_path)},
                   {"output_data_path", record.output_path},
                   {"model_config", record.model_config},
                   {"priority", OrNull(record.priority)},
                   {"status", BatchStatusName(record.status)},
                   {"status_reason", record.reason},
                   {"created_at", Time(record.created_at)},
                   {"started_at", Time(record.started_at)},
                   {"expires_at", Time(record.expires_at())},
                   {"completed_at", Time(record.completed_at)},
                   {"metadata", record.metadata}};
  job["counts"] = json::Object{
      {"total", record.rows}, {"completed", record.completed}, {"failed", record.failed}};
  job["progress"] =
      record.rows == 0 ? 0.0 : static_cast<double>(done) / static_cast<double>(record.rows);
  job["endpoint"] = OrNull(record.endpoint);
  job["output_file_id"] =
      record.status == BatchStatus::kCompleted ? OrNull(record.output_file_id) : json::Value();
  if (!record.warnings.empty()) job["warnings"] = record.warnings;
  return job;
}

json::Object OpenAiBatchJson(const BatchRecord& record) {
  const bool is_over = record.is_over();
  const auto when = [&](bool is_so) { return OrNull(is_so ? record.completed_at : 0); };
  json::Object batch{{"id", record.id},
                     {"object", "batch"},
                     {"endpoint", record.target},
                     {"model", OrNull(record.model)},
                     {"errors", nullptr},
                     {"input_file_id", record.input_path},
                     {"completion_window", "24h"},
                     {"status", OpenAiStatus(record)},
                     {"status_reason", record.reason}};
  batch["output_file_id"] =
      is_over && record.completed > 0 ? OrNull(record.output_file_id) : json::Value();
  batch["error_file_id"] =
      is_over && record.failed > 0 ? OrNull(record.error_file_id) : json::Value();
  batch["created_at"] = record.created_at;
  batch["in_progress_at"] = OrNull(record.started_at);
  batch["expires_at"] = record.expires_at();
  batch["finalizing_at"] = nullptr;
  batch["completed_at"] = when(record.status == BatchStatus::kCompleted);
  batch["failed_at"] = when(record.status == BatchStatus::kFailed && !record.is_expired);
  batch["expired_at"] = when(record.is_expired);
  batch["cancelling_at"] = nullptr;
  batch["cancelled_at"] = when(record.status == BatchStatus::kCancelled);
  batch["request_counts"] = json::Object{
      {"total", record.rows}, {"completed", record.completed}, {"failed", record.failed}};
  batch["metadata"] = record.metadata;
  return batch;
}

json::Object RowResultJson(const RowResult& result) {
  json::Object shown{{"row", result.row}, {"status", result.status}};
  if (result.has_failed())
    shown["error"] = result.error;
  else
    shown["output"] = result.body;
  return shown;
}

}  // namespace tessera::gateway
