// SPDX-License-Identifier: Apache-2.0
//
// PartialFile: a file while it is being downloaded, <target>.tessera.incomplete, with its journal
// <target>.tessera.journal (journal.h has the durability rule). Several threads write ranges of it;
// SHA-256 is taken over the beginning as it becomes contiguous, so that little is left to hash at
// the end. Whoever opens one holds the file's lock (file_lock.h). The name differs from
// huggingface_hub's "<etag>[.<random>].incomplete" on purpose: its older versions continue that one
// from its size, and ours has holes. What a killed one of theirs left is taken over, where a
// SHA-256 will tell whether it was any good: it becomes ours, as far as it has no hole.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/status.h"
#include "hub/journal.h"
#include "hub/range_set.h"

namespace tessera::hub {

class PartialFile {
 public:
  /// Goes on with what an earlier process left, if that was the same size and validator; makes the
  /// folder above. Errors as ErrnoStatus.
  static Result<std::unique_ptr<PartialFile>> Open(const std::filesystem::path& target,
                                                   uint64_t bytes, std::string_view validator);
  /// Disk that an unfinished download of `target` takes; 0 where there is none.
  static uint64_t DiskBytes(const std::filesystem::path& target);
  ~PartialFile();  // What is there stays for the next.
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  uint64_t bytes() const { return bytes_; }
  /// How much of the file huggingface_hub had left, if this object took that over; else 0.
  uint64_t TakenOverBytes() const { return taken_over_; }
  uint64_t PresentBytes() const;
  std::vector<ByteRange> Missing() const;

  /// Thread-safe. On success the range survives the end of the process. Requires the range inside
  /// the file. kResourceExhausted on a full disk.
  Status Write(uint64_t offset, ByteSpan bytes);

  /// Of the whole file; requires that nothing is missing. Reads what was not hashed on the way.
  Result<std::string> Sha256Hex();
  /// git's name of it.
  Result<std::string> GitBlobHex() const;

  /// Forgets all that is there: the bytes were wrong.
  Status Restart();

  /// Syncs, renames to the target, removes the journal. No other call may follow.
  Status Publish();

 private:
  PartialFile(std::filesystem::path target, uint64_t bytes, std::string validator);
  Status OpenFiles();
  Status TakeOver(const std::filesystem::path& foreign, uint64_t bytes);
  Status SyncFile();
  Status StartJournal(const Journal& journal);
  Status Append(std::string_view line);
  Status HashSome(bool to_the_end);
  Status SyncIfDue();

  const std::filesystem::path target_;
  const std::filesystem::path part_;
  const std::filesystem::path journal_path_;
  const uint64_t bytes_;
  const std::string validator_;
  std::string boot_;
  int fd_ = -1;
  int journal_fd_ = -1;
  uint64_t taken_over_ = 0;
  mutable std::mutex mutex_;
  RangeSet present_;  // Guarded by mutex_, as all below.
  uint64_t journal_ranges_ = 0;
  uint64_t unsynced_ = 0;  // Bytes written since the last sync began.
  bool is_syncing_ = false;
  bool is_hashing_ = false;  // One thread at a time hashes, without the mutex.
  uint64_t hashed_ = 0;
  std::unique_ptr<Sha256> hash_;
};

}  // namespace tessera::hub
