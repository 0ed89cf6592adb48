// SPDX-License-Identifier: Apache-2.0
//
// BatchFolder: the rows of one batch and what came of them, STATE/batches/ID:
//
//   rows.jsonl      what is asked, a row a line; complete and on the disk before the batch is
//   results.jsonl   {"row", "status", "body" | "error"} a line, in the order in which they came
//
// A result is written with one call as soon as it is there, so that a gateway that is killed finds
// it again; half a line at the end, of a power failure, is cut off and its row runs again. One
// thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/status.h"

namespace tessera::gateway {

struct RowResult {
  size_t row = 0;
  int status = 0;       // Of HTTP; 0: nobody was asked.
  json::Value body{};   // Of one that succeeded.
  std::string error{};  // Else why not.

  bool has_failed() const { return !error.empty(); }
};

class BatchFolder {
 public:
  /// Makes the folder with its rows. Dies unfinished: removed.
  class Maker {
   public:
    static Result<std::unique_ptr<Maker>> Make(const std::filesystem::path& folder);
    ~Maker();
    Maker(const Maker&) = delete;
    Maker& operator=(const Maker&) = delete;

    /// kResourceExhausted: a full disk, or more than kBatchInputBytesMax of rows.
    Status Add(std::string_view row);
    /// Durable when it returns. No call may follow but Keep.
    Status Finish();
    /// It has a record: it is not removed.
    void Keep() { is_kept_ = true; }
    int64_t rows() const { return rows_; }

   private:
    explicit Maker(std::filesystem::path folder) : folder_(std::move(folder)) {}
    const std::filesystem::path folder_;
    std::unique_ptr<FileWriter> writer_;
    std::string buffer_;
    int64_t rows_ = 0;
    bool is_kept_ = false;
  };

  enum class Use : uint8_t { kRead, kAppend };
  /// For kRead beside one that appends: what is half written is not there yet, and no Append.
  /// kNotFound, kDataLoss when results are damaged; or as reading and writing.
  static Result<std::unique_ptr<BatchFolder>> Open(const std::filesystem::path& folder, Use use);
  ~BatchFolder();
  BatchFolder(const BatchFolder&) = delete;
  BatchFolder& operator=(const BatchFolder&) = delete;

  size_t rows() const { return rows_.size(); }
  bool IsDone(size_t row) const { return results_[row].size > 0; }
  int64_t completed() const { return completed_; }
  int64_t failed() const { return failed_; }

  /// The line of a row.
  Result<std::string> Row(size_t row) const;
  /// Of a row that is done.
  Result<RowResult> ResultOf(size_t row) const;
  /// Requires a row that is not done. On an error nothing was written.
  Status Append(const RowResult& result);
  /// What was appended survives the power going out.
  Status Sync() const;

 private:
  struct Span {
    uint64_t offset = 0, size = 0;  // Without the line's end.
  };

  BatchFolder(std::filesystem::path folder, int rows_fd, int results_fd)
      : folder_(std::move(folder)), rows_fd_(rows_fd), results_fd_(results_fd) {}
  Status LoadRows();
  Status LoadResults();
  Status Note(std::string_view line, uint64_t offset);

  const std::filesystem::path folder_;
  const int rows_fd_, results_fd_;
  std::vector<Span> rows_, results_;
  uint64_t end_ = 0;  // Of the results.
  int64_t completed_ = 0, failed_ = 0;
};

}  // namespace tessera::gateway
