// SPDX-License-Identifier: Apache-2.0
#include "gateway/batch/make_batch.h"

#include <fmt/format.h>

#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "gateway/batch/batch_rows.h"
#include "gateway/limits.h"
#include "gateway/spec/brief.h"

namespace tessera::gateway {
namespace {

std::unexpected<ApiError> Refuse(int status, std::string text) {
  return std::unexpected(ApiError{.status = status, .text = std::move(text)});
}

/// What is wrong with a path or a model that a caller named.
ApiError ErrorOf(std::string_view name, const Status& status) {
  ApiError error{.status = 400, .text = status.ToString()};
  if (!name.empty()) error.text = fmt::format("{}: {}", name, error.text);
  return error;
}

/// The endpoint of this name, if the user may call it, else what the model is loaded from.
ApiResult<void> FindAnswerer(const BatchServices& services, BatchRecord* record) {
  if (services.context->controller->FindRoute(record->model, record->owner).route != nullptr) {
    record->endpoint = record->model;
    return {};
  }
  const auto asked = ReadCreate(record->endpoint_body);
  if (!asked.has_value()) return std::unexpected(asked.error());
  const auto& checkpoint = asked->spec.checkpoint_path;
  const auto found = checkpoint.has_value() ? services.models->ResolveCheckpoint(*checkpoint)
                                            : services.models->Resolve(record->model);
  if (!found.has_value())
    return std::unexpected(
        ErrorOf("model_config.model is no endpoint of yours, either", found.error()));
  return {};
}

ApiResult<void> CheckOutput(const BatchServices& services, BatchRecord* record) {
  if (!NewFileName(record->output_path).empty()) {
    record->output_file_id = FileStore::NewFileId();
    return {};
  }
  if (const Status fits = services.batches->root().CheckOutput(record->output_path); !fits.ok())
    return std::unexpected(ErrorOf("output_data_path", fits));
  return {};
}

/// The input's bytes: of an uploaded file or a path.
ApiResult<std::string> ReadInput(const BatchServices& services, const BatchRecord& record,
                                 std::string_view name, uint64_t bytes_max) {
  if (!IsFileId(record.input_path)) {
    auto bytes = services.batches->root().Read(record.input_path, bytes_max);
    if (!bytes.has_value()) return std::unexpected(ErrorOf(name, bytes.error()));
    return *std::move(bytes);
  }
  const FileStore& files = services.batches->files();
  const auto file = files.Find(record.owner, record.input_path);
  if (!file.has_value()) return Refuse(503, file.error().ToString());
  if (!file->has_value())
    return Refuse(404, fmt::format("{}: The specified file could not be found.", name));
  auto bytes = ReadFile(files.PathOf(**file), bytes_max);
  if (!bytes.has_value())
    return Refuse(
        400, fmt::format("{}: the file has more than {} bytes or cannot be read", name, bytes_max));
  return *std::move(bytes);
}

ApiError NotKept(const Status& status) {
  if (status.message().starts_with("content:")) return {.status = 413, .text = status.message()};
  log::error("gateway: a batch could not be stored: {}", status.ToString());
  return {.status = 507,
          .text =
              "The batch could not be stored, and nothing of it was kept: the disk is full or "
              "does not take it"};
}

/// Gives rows to the folder of a new batch.
class RowWriter {
 public:
  explicit RowWriter(BatchFolder::Maker* maker) : maker_(*maker) {}
  ApiResult<void> operator()(const BatchRow& row) {
    if (const Status added = maker_.Add(WriteRow(row)); !added.ok())
      return std::unexpected(NotKept(added));
    return {};
  }

 private:
  BatchFolder::Maker& maker_;
};

ApiResult<std::unique_ptr<BatchFolder::Maker>> MakeFolder(const BatchServices& services,
                                                          BatchRecord* record) {
  record->id = NewId("batch-");
  auto maker = services.batches->MakeFolder(record->id);
  if (!maker.has_value()) return std::unexpected(NotKept(maker.error()));
  return *std::move(maker);
}

}  // namespace

ApiResult<BatchRecord> MakeBatch(const BatchServices& services, const json::Object& body,
                                 BatchVersion version, const std::string& user) {
  auto record = ReadBatchRequest(body, version);
  if (!record.has_value()) return record;
  record->owner = user;
  if (auto found = FindAnswerer(services, &*record); !found.has_value())
    return std::unexpected(std::move(found).error());
  if (auto output = CheckOutput(services, &*record); !output.has_value())
    return std::unexpected(std::move(output).error());
  auto maker = MakeFolder(services, &*record);
  if (!maker.has_value()) return std::unexpected(std::move(maker).error());
  const OnRow on_row = RowWriter(maker->get());
  ApiResult<RowsFacts> facts;
  if (record->input_path.empty()) {
    facts = ReadContent(*json::Find(body, "content"), record->model, on_row);
  } else {
    const auto text = ReadInput(services, *record, "input_data_path", kBatchInputBytesMax);
    if (!text.has_value()) return std::unexpected(text.error());
    facts = ReadContentText(*text, record->model, on_row);
  }
  if (!facts.has_value()) return std::unexpected(std::move(facts).error());
  if (version == BatchVersion::kV1 && facts->form != BatchForm::kPrompts)
    return Refuse(400,
                  "content: this version takes prompts; requests are for "
                  "/v2/batch-completions");
  record->form = facts->form;
  record->wants_tokens = facts->wants_tokens;
  return services.batches->Add(*std::move(record), maker->get());
}

ApiResult<BatchRecord> MakeOpenAiBatch(const BatchServices& services, const json::Object& body,
                                       const std::string& user) {
  auto record = ReadOpenAiBatch(body);
  if (!record.has_value()) return record;
  record->owner = user;
  record->output_file_id = FileStore::NewFileId();
  record->error_file_id = FileStore::NewFileId();
  const auto text = ReadInput(services, *record, "input_file_id", kBatchInputBytesMax);
  if (!text.has_value()) return std::unexpected(text.error());
  auto maker = MakeFolder(services, &*record);
  if (!maker.has_value()) return std::unexpected(std::move(maker).error());
  if (auto read = ReadBatchLines(*text, record->target, &record->model, RowWriter(maker->get()));
      !read.has_value())
    return std::unexpected(std::move(read).error());
  if (record->model.empty())
    return Refuse(400, "input_file_id: no line has custom_id, method, url and a body with model");
  if (services.context->controller->FindRoute(record->model, user).route == nullptr)
    return Refuse(404, fmt::format("model: {} is no endpoint of yours", Brief(record->model, 64)));
  record->endpoint = record->model;
  record->data_parallelism = kBatchParallelismMax;  // As many as the endpoint takes.
  return services.batches->Add(*std::move(record), maker->get());
}

}  // namespace tessera::gateway
