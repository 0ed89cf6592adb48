// SPDX-License-Identifier: Apache-2.0
#include "gateway/batch/batch_record.h"

#include <array>
#include <charconv>

namespace tessera::gateway {
namespace {

constexpr int64_t kRankMax = 1000;
constexpr std::array<std::string_view, 5> kStatusNames = {"queued", "running", "completed",
                                                          "failed", "cancelled"};
constexpr std::array<std::string_view, 3> kFormNames = {"prompts", "requests", "lines"};

/// The members of a record and their names, once for both directions.
template <class Record, class Visitor>
Status VisitMembers(Record& record, const Visitor& visit) {
  TESSERA_RETURN_IF_ERROR(visit("id", record.id));
  TESSERA_RETURN_IF_ERROR(visit("owner", record.owner));
  TESSERA_RETURN_IF_ERROR(visit("reason", record.reason));
  TESSERA_RETURN_IF_ERROR(visit("is_cancelling", record.is_cancelling));
  TESSERA_RETURN_IF_ERROR(visit("is_expired", record.is_expired));
  TESSERA_RETURN_IF_ERROR(visit("model", record.model));
  TESSERA_RETURN_IF_ERROR(visit("endpoint", record.endpoint));
  TESSERA_RETURN_IF_ERROR(visit("endpoint_body", record.endpoint_body));
  TESSERA_RETURN_IF_ERROR(visit("model_config", record.model_config));
  TESSERA_RETURN_IF_ERROR(visit("metadata", record.metadata));
  TESSERA_RETURN_IF_ERROR(visit("warnings", record.warnings));
  TESSERA_RETURN_IF_ERROR(visit("wants_tokens", record.wants_tokens));
  TESSERA_RETURN_IF_ERROR(visit("data_parallelism", record.data_parallelism));
  TESSERA_RETURN_IF_ERROR(visit("max_runtime_s", record.max_runtime_s));
  TESSERA_RETURN_IF_ERROR(visit("priority", record.priority));
  TESSERA_RETURN_IF_ERROR(visit("input_path", record.input_path));
  TESSERA_RETURN_IF_ERROR(visit("output_path", record.output_path));
  TESSERA_RETURN_IF_ERROR(visit("output_file_id", record.output_file_id));
  TESSERA_RETURN_IF_ERROR(visit("error_file_id", record.error_file_id));
  TESSERA_RETURN_IF_ERROR(visit("target", record.target));
  TESSERA_RETURN_IF_ERROR(visit("rows", record.rows));
  TESSERA_RETURN_IF_ERROR(visit("completed", record.completed));
  TESSERA_RETURN_IF_ERROR(visit("failed", record.failed));
  TESSERA_RETURN_IF_ERROR(visit("created_at", record.created_at));
  TESSERA_RETURN_IF_ERROR(visit("started_at", record.started_at));
  return visit("completed_at", record.completed_at);
}

struct Reader {
  const json::Object& stored;

  Status operator()(std::string_view name, std::string& value) const {
    TESSERA_ASSIGN_OR_RETURN(value, json::NeedString(stored, name));
    return {};
  }
  Status operator()(std::string_view name, int64_t& value) const {
    TESSERA_ASSIGN_OR_RETURN(value, json::NeedInt(stored, name));
    return {};
  }
  Status operator()(std::string_view name, bool& value) const {
    TESSERA_ASSIGN_OR_RETURN(value, json::GetBool(stored, name, false));
    return {};
  }
  Status operator()(std::string_view name, json::Object& value) const {
    const json::Value* found = json::Find(stored, name);
    if (found == nullptr || !found->is_object())
      return InvalidArgument(std::string(name) + ": expected an object");
    value = found->get_object();
    return {};
  }
  Status operator()(std::string_view name, json::Array& value) const {
    const json::Value* found = json::Find(stored, name);
    if (found == nullptr || !found->is_array())
      return InvalidArgument(std::string(name) + ": expected a list");
    value = found->get_array();
    return {};
  }
};

/// The index of a name in an array of names.
template <class Enum, size_t n>
Result<Enum> ReadName(const json::Object& stored, std::string_view key,
                      const std::array<std::string_view, n>& names) {
  TESSERA_ASSIGN_OR_RETURN(const std::string text, json::NeedString(stored, key));
  for (size_t i = 0; i < n; ++i)
    if (names[i] == text) return static_cast<Enum>(i);
  return Fail(InvalidArgument(std::string(key) + ": unknown"));
}

}  // namespace

std::string_view BatchStatusName(BatchStatus status) {
  return kStatusNames[static_cast<size_t>(status)];
}

Result<int64_t> BatchRank(std::string_view priority) {
  if (priority.empty() || priority == "normal") return 0;
  if (priority == "high") return 1;
  if (priority == "low") return -1;
  int64_t rank = 0;
  const auto [end, error] =
      std::from_chars(priority.data(), priority.data() + priority.size(), rank);
  if (error != std::errc() || end != priority.data() + priority.size() || rank < -kRankMax ||
      rank > kRankMax)
    return Fail(InvalidArgument(
        "priority: expected high, normal, low or a whole number from -1000 to 1000"));
  return rank;
}

json::Object WriteBatch(const BatchRecord& record) {
  json::Object stored{{"status", BatchStatusName(record.status)},
                      {"form", kFormNames[static_cast<size_t>(record.form)]}};
  (void)VisitMembers(record, [&](std::string_view name, const auto& value) {
    stored[name] = value;
    return Status();
  });
  return stored;
}

Result<BatchRecord> ReadBatch(const json::Object& stored) {
  BatchRecord record;
  const Status read = [&]() -> Status {
    TESSERA_ASSIGN_OR_RETURN(record.status, ReadName<BatchStatus>(stored, "status", kStatusNames));
    TESSERA_ASSIGN_OR_RETURN(record.form, ReadName<BatchForm>(stored, "form", kFormNames));
    return VisitMembers(record, Reader{stored});
  }();
  if (!read.ok()) return Fail(DataLoss("stored batch: " + read.message()));
  return record;
}

}  // namespace tessera::gateway
