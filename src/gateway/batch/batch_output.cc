// SPDX-License-Identifier: Apache-2.0
#include "gateway/batch/batch_output.h"

#include <fmt/format.h>

#include <utility>

#include "gateway/batch/batch_request.h"
#include "gateway/batch/batch_rows.h"

namespace tessera::gateway {
namespace {

using Write = BatchRoot::Write;
using Produce = std::function<Status(const Write&)>;

json::Object ErrorJson(const RowResult& result) {
  return {{"message", result.error},
          {"type", result.status >= 500 ? "server_error" : "invalid_request_error"},
          {"param", nullptr},
          {"code", result.status == 0 ? json::Value() : json::Value(result.status)}};
}

Status ProduceList(const BatchRecord& batch, const BatchFolder& folder, const Write& write) {
  TESSERA_RETURN_IF_ERROR(write("["));
  for (size_t row = 0; row < folder.rows(); ++row) {
    TESSERA_ASSIGN_OR_RETURN(const RowResult result, folder.ResultOf(row));
    TESSERA_RETURN_IF_ERROR(write(row == 0 ? "\n" : ",\n"));
    TESSERA_RETURN_IF_ERROR(write(json::Serialize(ResultJson(result, batch.form))));
  }
  return write("\n]\n");
}

/// OpenAI's line for a result.
json::Object LineJson(const BatchRecord& batch, const RowResult& result,
                      const std::string& custom_id) {
  const std::string id = fmt::format("{}-{}", batch.id, result.row);
  json::Object line{{"id", id},
                    {"custom_id", custom_id.empty() ? json::Value() : json::Value(custom_id)},
                    {"response", nullptr},
                    {"error", nullptr}};
  if (result.has_failed() && result.status == 0) {
    line["error"] = json::Object{{"code", "invalid_row"}, {"message", result.error}};
  } else {
    line["response"] = json::Object{
        {"status_code", result.status},
        {"request_id", id},
        {"body", result.has_failed() ? json::Value(json::Object{{"error", ErrorJson(result)}})
                                     : result.body}};
  }
  return line;
}

/// Rows that failed, or those that did not. What has no result yet is in neither.
Status ProduceLines(const BatchRecord& batch, const BatchFolder& folder, bool of_failed,
                    const Write& write) {
  for (size_t row = 0; row < folder.rows(); ++row) {
    if (!folder.IsDone(row)) continue;
    TESSERA_ASSIGN_OR_RETURN(const RowResult result, folder.ResultOf(row));
    if (result.has_failed() != of_failed) continue;
    TESSERA_ASSIGN_OR_RETURN(const std::string asked, folder.Row(row));
    TESSERA_ASSIGN_OR_RETURN(const BatchRow parsed, ReadRow(asked));
    TESSERA_RETURN_IF_ERROR(
        write(json::Serialize(LineJson(batch, result, parsed.custom_id)) + "\n"));
  }
  return {};
}

Status StatusOfError(const ApiError& error) {
  return error.status == 413 || error.status == 507 ? ResourceExhausted(error.text)
                                                    : Unavailable(error.text);
}

Status WriteToFile(const BatchRecord& batch, const std::string& id, std::string name,
                   FileStore* files, const Produce& produce) {
  TESSERA_ASSIGN_OR_RETURN(const auto before, files->Find(batch.owner, id));
  if (before.has_value()) return {};
  auto file = files->Begin(batch.owner, id);
  if (!file.has_value()) return StatusOfError(file.error());
  TESSERA_RETURN_IF_ERROR(produce([&](std::string_view bytes) {
    const auto written = (*file)->Append(bytes);
    return written.has_value() ? Status() : StatusOfError(written.error());
  }));
  const auto published = (*file)->Publish(std::move(name), "batch_output");
  return published.has_value() ? Status() : StatusOfError(published.error());
}

}  // namespace

json::Value ResultJson(const RowResult& result, BatchForm form) {
  if (!result.has_failed()) return result.body;
  json::Object failed{{"error", ErrorJson(result)}};
  // A reader of completions finds its members in every element.
  if (form == BatchForm::kPrompts) {
    failed["text"] = "";
    failed["num_prompt_tokens"] = nullptr;
    failed["num_completion_tokens"] = 0;
    failed["tokens"] = nullptr;
  }
  return failed;
}

Status WriteBatchOutput(const BatchRecord& batch, const BatchFolder& folder, const BatchRoot& root,
                        FileStore* files) {
  if (batch.form == BatchForm::kLines) {
    for (const bool of_failed : {false, true}) {
      if ((of_failed ? folder.failed() : folder.completed()) == 0) continue;
      TESSERA_RETURN_IF_ERROR(WriteToFile(
          batch, of_failed ? batch.error_file_id : batch.output_file_id,
          fmt::format("{}_{}.jsonl", batch.id, of_failed ? "error" : "output"), files,
          [&](const Write& write) { return ProduceLines(batch, folder, of_failed, write); }));
    }
    return {};
  }
  const Produce list = [&](const Write& write) { return ProduceList(batch, folder, write); };
  const std::string_view name = NewFileName(batch.output_path);
  if (name.empty()) return root.WriteFile(batch.output_path, list);
  return WriteToFile(batch, batch.output_file_id, std::string(name), files, list);
}

}  // namespace tessera::gateway
