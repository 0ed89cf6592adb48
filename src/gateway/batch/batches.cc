// SPDX-License-Identifier: Apache-2.0
//
// What callers do with batches, and their life on the disk. Running them: batches_run.cc.
#include "gateway/batch/batches.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "base/thread.h"
#include "gateway/limits.h"

namespace tessera::gateway {
namespace {

namespace fs = std::filesystem;

ApiError NotStored(const Status& status) {
  log::error("gateway: a batch could not be stored: {}", status.ToString());
  return {.status = 507,
          .text =
              "The batch could not be stored, and nothing has changed: the disk is full or "
              "does not take it"};
}

ApiError NoBatch(std::string_view id) {
  return {.status = 404, .text = fmt::format("Batch {} was not found.", id.substr(0, 200))};
}

}  // namespace

Batches::Batches(const Context* context, FileStore* files, BatchRoot root)
    : context_(*context),
      files_(*files),
      root_(std::move(root)),
      folder_(context->store->folder() / "batches") {}

Batches::~Batches() {
  Stop();
}

void Batches::Stop() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  inbox_->Wake();
  if (thread_.joinable()) thread_.join();
}

Result<std::unique_ptr<Batches>> Batches::Start(const Context* context, FileStore* files,
                                                BatchRoot root) {
  std::unique_ptr<Batches> batches(new Batches(context, files, std::move(root)));
  TESSERA_RETURN_IF_ERROR(batches->Load());
  TESSERA_ASSIGN_OR_RETURN(batches->thread_,
                           StartThread("batches", [raw = batches.get()] { raw->Loop(); }));
  return batches;
}

// --- The disk ------------------------------------------------------------------------------

Status Batches::Load() {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return ErrnoStatus(error.value(), "making", folder_);
  if (chmod(folder_.c_str(), S_IRWXU) != 0) return ErrnoStatus(errno, "making private", folder_);
  TESSERA_ASSIGN_OR_RETURN(const auto texts, context_.store->LoadBatches());
  for (const std::string& text : texts) TESSERA_RETURN_IF_ERROR(LoadOne(text));
  RemoveUnknownFolders();
  return {};
}

Status Batches::LoadOne(const std::string& text) {
  TESSERA_ASSIGN_OR_RETURN(const json::Value stored, json::Parse(text, {}, "stored batch"));
  if (!stored.is_object()) return DataLoss("stored batch: not an object");
  TESSERA_ASSIGN_OR_RETURN(BatchRecord record, ReadBatch(stored.get_object()));
  const auto job = std::make_shared<Job>();
  if (!record.is_over()) {
    // How far it was; a folder that is gone ends it when its turn comes.
    const auto folder = BatchFolder::Open(FolderOf(record.id), BatchFolder::Use::kRead);
    if (folder.has_value()) {
      record.completed = (*folder)->completed();
      record.failed = (*folder)->failed();
    }
  } else if (record.endpoint.empty() &&
             context_.controller->Find(record.id, record.owner).has_value()) {
    // It ended just before the gateway did.
    (void)context_.controller->Delete(record.id, record.owner);
  }
  const std::string id = record.id;
  job->record = std::move(record);
  jobs_[id] = job;
  return {};
}

void Batches::RemoveUnknownFolders() const {
  std::error_code error;
  std::vector<fs::path> unknown;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error))
    if (!jobs_.contains(entry->path().filename().string())) unknown.push_back(entry->path());
  for (const fs::path& path : unknown) {
    fs::remove_all(path, error);
    if (error) log::warn("gateway: removing {}: {}", path.string(), error.message());
  }
}

Status Batches::ChangeLocked(Job* job, const std::function<void(BatchRecord*)>& change) {
  BatchRecord changed = job->record;
  change(&changed);
  TESSERA_RETURN_IF_ERROR(
      context_.store->PutBatch(changed.id, json::Serialize(WriteBatch(changed))));
  job->record = std::move(changed);
  return {};
}

Status Batches::Change(Job* job, const std::function<void(BatchRecord*)>& change) {
  const std::lock_guard lock(mutex_);
  return ChangeLocked(job, change);
}

// --- Callers -------------------------------------------------------------------------------

Result<std::unique_ptr<BatchFolder::Maker>> Batches::MakeFolder(const std::string& id) const {
  return BatchFolder::Maker::Make(FolderOf(id));
}

ApiResult<BatchRecord> Batches::Add(BatchRecord record, BatchFolder::Maker* rows) {
  record.rows = rows->rows();
  record.created_at = context_.clock->UnixSeconds();
  const auto job = std::make_shared<Job>();
  job->record = record;
  if (const Status durable = rows->Finish(); !durable.ok())
    return std::unexpected(NotStored(durable));
  {
    const std::lock_guard lock(mutex_);
    const auto open = std::ranges::count_if(jobs_, [&](const auto& entry) {
      return entry.second->record.owner == record.owner && !entry.second->record.is_over();
    });
    if (open >= kBatchesOpenMax)
      return std::unexpected(ApiError{
          .status = 429,
          .text = fmt::format("You have {} batches that are not over; wait for some", open)});
    if (const Status stored = ChangeLocked(job.get(), [](BatchRecord*) {}); !stored.ok())
      return std::unexpected(NotStored(stored));
    jobs_[record.id] = job;
  }
  rows->Keep();
  inbox_->Wake();
  return record;
}

std::shared_ptr<Batches::Job> Batches::FindLocked(std::string_view id,
                                                  std::string_view owner) const {
  const auto found = jobs_.find(id);
  return found != jobs_.end() && found->second->record.owner == owner ? found->second : nullptr;
}

std::optional<BatchRecord> Batches::Find(std::string_view id, std::string_view owner) const {
  const std::lock_guard lock(mutex_);
  const auto job = FindLocked(id, owner);
  if (job == nullptr) return std::nullopt;
  return job->record;
}

std::vector<BatchRecord> Batches::List(std::string_view owner) const {
  const std::lock_guard lock(mutex_);
  std::vector<BatchRecord> records;
  for (const auto& [id, job] : jobs_)
    if (job->record.owner == owner) records.push_back(job->record);
  return records;
}

Result<std::unique_ptr<BatchFolder>> Batches::OpenFolder(const BatchRecord& record) const {
  return BatchFolder::Open(FolderOf(record.id), BatchFolder::Use::kRead);
}

ApiResult<bool> Batches::Cancel(std::string_view id, std::string_view owner) {
  {
    const std::lock_guard lock(mutex_);
    const auto job = FindLocked(id, owner);
    if (job == nullptr) return std::unexpected(NoBatch(id));
    if (job->record.is_over()) return false;
    const Status stored =
        ChangeLocked(job.get(), [](BatchRecord* record) { record->is_cancelling = true; });
    if (!stored.ok()) return std::unexpected(NotStored(stored));
  }
  inbox_->Wake();
  return true;
}

ApiResult<BatchRecord> Batches::SetPriority(std::string_view id, std::string_view owner,
                                            const std::string& priority) {
  if (const auto rank = BatchRank(priority); !rank.has_value())
    return std::unexpected(ApiError{.text = rank.error().message()});
  const std::lock_guard lock(mutex_);
  const auto job = FindLocked(id, owner);
  if (job == nullptr) return std::unexpected(NoBatch(id));
  const Status stored =
      ChangeLocked(job.get(), [&](BatchRecord* record) { record->priority = priority; });
  if (!stored.ok()) return std::unexpected(NotStored(stored));
  inbox_->Wake();
  return job->record;
}

ApiResult<void> Batches::Remove(std::string_view id, std::string_view owner) {
  const std::lock_guard lock(mutex_);
  const auto job = FindLocked(id, owner);
  if (job == nullptr) return std::unexpected(NoBatch(id));
  if (!job->record.is_over())
    return std::unexpected(
        ApiError{.status = 409, .text = "The batch is not over; cancel it first"});
  if (const Status removed = context_.store->RemoveBatch(id); !removed.ok())
    return std::unexpected(NotStored(removed));
  std::error_code ignored;  // What has no record goes at the next start.
  fs::remove_all(FolderOf(id), ignored);
  jobs_.erase(jobs_.find(id));
  return {};
}

}  // namespace tessera::gateway
