// SPDX-License-Identifier: Apache-2.0
//
// FileStore: what callers uploaded, each under STATE/files/ID, its record in the store. A file is
// written in STATE/files/incoming and gets its name and record when it is whole and on the disk: no
// listing shows less. What a gateway that was killed left unfinished goes at the next start.
//
// Thread-safe. Limits hold while bytes arrive: what is being uploaded counts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "gateway/spec/read_spec.h"
#include "gateway/store/store.h"

namespace tessera::gateway {

struct FileLimits {
  uint64_t file_bytes_max = 512u << 20;
  uint64_t owner_bytes_max = 16ull << 30;  // Of all files of an owner.
  int64_t owner_files_max = 10000;
};

class FileStore {
 public:
  /// A file being written, of one thread at a time. Dies unpublished: nothing is left of it.
  class Incoming {
   public:
    ~Incoming();
    Incoming(const Incoming&) = delete;
    Incoming& operator=(const Incoming&) = delete;

    /// 413 past a limit, 507 when the disk is full. No call but the destructor may follow an error.
    ApiResult<void> Append(std::string_view bytes);
    /// Durable when it returns. 507 as above. No call may follow.
    ApiResult<FileRecord> Publish(std::string filename, std::string purpose);

   private:
    friend class FileStore;
    Incoming(FileStore* store, std::string owner, std::string id)
        : store_(*store), owner_(std::move(owner)), id_(std::move(id)) {}

    FileStore& store_;
    const std::string owner_;
    const std::string id_;
    std::unique_ptr<FileWriter> writer_;
    Sha256 hash_;
    uint64_t reserved_ = 0;
    bool is_published_ = false;
  };

  /// Makes the folder, or removes from it what has no record. `store` must outlive it.
  static Result<std::unique_ptr<FileStore>> Open(Store* store, const FileLimits& limits);

  /// 413 when the owner has as many as allowed. Must not outlive this. `id` is one that NewFileId
  /// gave and no file has; empty: a new one.
  ApiResult<std::unique_ptr<Incoming>> Begin(const std::string& owner, std::string id = {});
  static std::string NewFileId() { return NewId("file-"); }

  /// Nothing: no such file of this owner.
  Result<std::optional<FileRecord>> Find(std::string_view owner, std::string_view id) const;
  /// Oldest first.
  Result<std::vector<FileRecord>> List(std::string_view owner) const;
  /// False: there was none. Who has it open keeps it.
  Result<bool> Remove(std::string_view owner, std::string_view id);
  /// Of a file that Find gave.
  std::filesystem::path PathOf(const FileRecord& record) const { return folder_ / record.id; }

  const FileLimits& limits() const { return limits_; }

 private:
  struct Usage {
    uint64_t bytes = 0;
    int64_t files = 0;
  };

  FileStore(Store* store, const FileLimits& limits);
  std::filesystem::path IncomingPath(const std::string& id) const;
  Status Recover();
  /// Takes room for more bytes of a file that has `before`.
  ApiResult<void> Reserve(const std::string& owner, uint64_t before, uint64_t more);
  void GiveBack(const std::string& owner, uint64_t bytes);

  Store& store_;
  const FileLimits limits_;
  const std::filesystem::path folder_;
  std::mutex mutex_;
  std::map<std::string, Usage, std::less<>> usage_;  // By owner, with what is incoming.
};

}  // namespace tessera::gateway
