// SPDX-License-Identifier: Apache-2.0
//
// Batches: keeps them, and runs their rows. One thread takes rows to workers, those of batches with
// a higher priority first, and writes down what comes back; callers make, change and read batches.
//
//   caller ─▶ Add ─▶ folder and record on the disk ─▶ answer;  the thread is woken
//   thread:  start (a temporary endpoint, if none is named) ─▶ rows under way ─▶ results ─▶ output
//
// A gateway that was killed goes on at the first row without a result; a row that has one is never
// asked again. Thread-safe: one lock guards the records, and is held while one is stored.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gateway/api/context.h"
#include "gateway/batch/batch_folder.h"
#include "gateway/batch/batch_record.h"
#include "gateway/batch/batch_root.h"
#include "gateway/batch/batch_run.h"
#include "gateway/batch/row_call.h"
#include "gateway/files/file_store.h"

namespace tessera::gateway {

class Batches {
 public:
  /// Loads what is stored and begins. All must outlive it.
  static Result<std::unique_ptr<Batches>> Start(const Context* context, FileStore* files,
                                                BatchRoot root);
  ~Batches();
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  const BatchRoot& root() const { return root_; }
  FileStore& files() const { return files_; }

  /// A folder for the rows of a new batch, and the batch's id.
  Result<std::unique_ptr<BatchFolder::Maker>> MakeFolder(const std::string& id) const;
  /// Durable when it returns. `record` has all but status, reason and times. 429 when the owner has
  /// too many, 507 when it could not be stored.
  ApiResult<BatchRecord> Add(BatchRecord record, BatchFolder::Maker* rows);

  std::optional<BatchRecord> Find(std::string_view id, std::string_view owner) const;
  /// Oldest first.
  std::vector<BatchRecord> List(std::string_view owner) const;
  /// Its results, as they are on the disk.
  Result<std::unique_ptr<BatchFolder>> OpenFolder(const BatchRecord& record) const;

  // 404 for one that `owner` does not have, 507 when it could not be stored.

  /// False: it is over.
  ApiResult<bool> Cancel(std::string_view id, std::string_view owner);
  ApiResult<BatchRecord> SetPriority(std::string_view id, std::string_view owner,
                                     const std::string& priority);
  /// 409 for one that is not over.
  ApiResult<void> Remove(std::string_view id, std::string_view owner);

  /// Ends what is under way; unfinished batches go on at the next start. Records can still be read.
  void Stop();

 private:
  struct Job {
    BatchRecord record;               // Under mutex_.
    std::unique_ptr<BatchRun> run{};  // Of the thread: it has been started here.
    TimePoint not_before{};           // Of the thread: after something that may work later.
  };
  using Jobs = std::map<std::string, std::shared_ptr<Job>, std::less<>>;

  Batches(const Context* context, FileStore* files, BatchRoot root);
  Status Load();
  Status LoadOne(const std::string& text);
  void RemoveUnknownFolders() const;
  std::filesystem::path FolderOf(std::string_view id) const { return folder_ / id; }
  std::shared_ptr<Job> FindLocked(std::string_view id, std::string_view owner) const;
  /// Changes and stores; on an error nothing has changed.
  Status ChangeLocked(Job* job, const std::function<void(BatchRecord*)>& change);
  Status Change(Job* job, const std::function<void(BatchRecord*)>& change);
  /// What is shown meanwhile; not stored.
  void SetReason(Job* job, std::string reason);

  // The thread's.
  void Loop();
  void Look();
  void Sweep();
  std::vector<std::shared_ptr<Job>> InOrder() const;
  void Settle(const std::vector<RowOutcome>& outcomes);
  /// What it is at present.
  BatchRecord Copy(const Job& job) const;
  void Advance(Job* job);
  /// False: it cannot be started now.
  bool Begin(Job* job);
  /// The way to the workers; null: none at present, or the batch has ended for it.
  std::shared_ptr<Route> FindWay(Job* job, const BatchRecord& record);
  bool HasEndpoint(Job* job, const BatchRecord& record);
  void Launch(Job* job, const BatchRecord& record, const std::shared_ptr<Route>& route);
  int64_t RoomFor(const BatchRecord& record) const;
  void Finish(Job* job);
  void End(Job* job, BatchStatus status, std::string reason, bool is_expired = false);
  void Retry(Job* job, std::string why);

  const Context& context_;
  FileStore& files_;
  const BatchRoot root_;
  const std::filesystem::path folder_;
  const std::shared_ptr<RowInbox> inbox_ = std::make_shared<RowInbox>();

  mutable std::mutex mutex_;
  Jobs jobs_;
  bool is_ending_ = false;
  std::map<std::string, int64_t> under_way_;  // Of the thread: rows by endpoint.
  TimePoint next_sweep_{};
  std::thread thread_;
};

}  // namespace tessera::gateway
