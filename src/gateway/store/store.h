// SPDX-License-Identifier: Apache-2.0
//
// Store: what a gateway must not forget: endpoints, the workers it started, events, files. A call
// that returned success is on the disk (SQLite, WAL, synchronous FULL); one that failed changed
// nothing. Thread-safe: one lock, since every write waits for the disk anyway.
//
// One gateway at a time has a state folder: it holds `gateway.lock` while it lives. The lock says
// to workers, too, that somebody looks after them (launch/).
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "gateway/store/records.h"

namespace tessera::gateway {

class Database;

class Store {
 public:
  /// Makes the folder (mode 0700) and the database in it, or opens and migrates them.
  /// kUnavailable when another gateway has it, kFailedPrecondition when a newer Tessera wrote it,
  /// kDataLoss when it is damaged.
  static Result<std::unique_ptr<Store>> Open(const std::filesystem::path& state_dir);
  /// The same with a database that is elsewhere (PostgreSQL), which nobody else writes.
  static Result<std::unique_ptr<Store>> Open(const std::filesystem::path& state_dir,
                                             std::unique_ptr<Database> database);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  /// Whether the database is still there; SQLite always is. kUnavailable: for good.
  Status Check() const;

  // Endpoints. The event is written together with the change.

  /// kAlreadyExists if there is one of this name.
  Status InsertEndpoint(const EndpointRecord& record, EventRecord event);
  /// Replaces the one of this id if it still has `revision_before`; else kFailedPrecondition.
  Status UpdateEndpoint(const EndpointRecord& record, int64_t revision_before, EventRecord event);
  /// With its events. Success if there is none.
  Status RemoveEndpoint(std::string_view id);
  Result<std::vector<EndpointRecord>> LoadEndpoints() const;

  // Workers.

  Status PutWorker(const WorkerRecord& record);
  Status RemoveWorker(std::string_view id);
  Result<std::vector<WorkerRecord>> LoadWorkers() const;

  // Events. Beyond kEventsPerEndpointMax the oldest of an endpoint go.

  /// Returns its sequence number.
  Result<int64_t> AppendEvent(EventRecord event);
  /// Those with a larger sequence than `after`, oldest first.
  Result<std::vector<EventRecord>> Events(std::string_view endpoint_id, int64_t after,
                                          int64_t limit) const;

  // Files (their records only).

  Status InsertFile(const FileRecord& record);
  /// Nothing: no such file of this owner.
  Result<std::optional<FileRecord>> FindFile(std::string_view owner, std::string_view id) const;
  /// Oldest first.
  Result<std::vector<FileRecord>> ListFiles(std::string_view owner) const;
  /// Of all owners.
  Result<std::vector<FileRecord>> LoadFiles() const;
  /// False: there was none.
  Result<bool> RemoveFile(std::string_view owner, std::string_view id);

  // Batches, as the texts that batch/ makes of them.

  /// Replaces the one of this id.
  Status PutBatch(std::string_view id, std::string_view text);
  Status RemoveBatch(std::string_view id);
  /// Oldest first.
  Result<std::vector<std::string>> LoadBatches() const;

 private:
  Store(std::filesystem::path folder, int lock_fd, std::unique_ptr<Database> database);
  static Result<std::unique_ptr<Store>> Migrated(const std::filesystem::path& folder, int lock_fd,
                                                 std::unique_ptr<Database> database);
  Result<int64_t> AppendLocked(const EventRecord& event);

  const std::filesystem::path folder_;
  const int lock_fd_;
  mutable std::mutex mutex_;
  std::unique_ptr<Database> database_;
};

inline constexpr std::string_view kLockFile = "gateway.lock";
inline constexpr std::string_view kDatabaseFile = "gateway.db";

}  // namespace tessera::gateway
