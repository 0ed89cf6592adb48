// SPDX-License-Identifier: Apache-2.0
//
// BatchRun: which rows of a running batch are next, under way, to be tried again, and not yet
// written down. Belongs to one thread.
//
//   open ─ TakeRow ─▶ under way ─ Settle ─▶ written down
//     ▲                   │ ▲                   ▲
//     └── Settle(wait) ───┘ └── after a pause ──┘ (a full disk: kept, tried again by WriteDown)
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "gateway/batch/batch_folder.h"
#include "gateway/batch/row_call.h"

namespace tessera::gateway {

/// Calls that one row may take, when workers fail under it.
inline constexpr int kRowAttemptsMax = 5;

class BatchRun {
 public:
  explicit BatchRun(std::unique_ptr<BatchFolder> folder) : folder_(std::move(folder)) {}
  ~BatchRun() { CancelCalls(); }
  BatchRun(const BatchRun&) = delete;
  BatchRun& operator=(const BatchRun&) = delete;

  const BatchFolder& folder() const { return *folder_; }
  size_t under_way() const { return calls_.size(); }
  /// All rows have a result that is written down.
  bool IsDone() const;
  /// Why the last row that is to be tried again was not answered; empty: none is.
  const std::string& trouble() const { return trouble_; }

  /// A row to be asked now, and the number of its call. Nothing while none is due.
  std::optional<std::pair<size_t, uint64_t>> TakeRow(TimePoint now);
  void NoteCall(size_t row, uint64_t call, CancelForward cancel);
  /// Of TakeRow's row, in place of a call: it fails without being asked.
  void FailRow(size_t row, std::string error);
  /// An outcome of a call that is not under way any more is dropped.
  void Settle(const RowOutcome& outcome, RowVerdict verdict, TimePoint now);

  /// Writes down what is not yet. On an error it is kept, and no row should be taken until this
  /// has succeeded.
  Status WriteDown();
  Status Sync() const { return folder_->Sync(); }
  /// Ends what is under way; its rows are open again.
  void CancelCalls();

 private:
  struct Call {
    uint64_t number = 0;
    CancelForward cancel{};
  };

  const std::unique_ptr<BatchFolder> folder_;
  size_t next_ = 0;                          // Rows before it were taken at least once.
  std::multimap<TimePoint, size_t> paused_;  // To be taken again, by when.
  std::unordered_map<size_t, int> failures_;
  std::unordered_map<size_t, Call> calls_;
  std::deque<RowResult> unwritten_;
  uint64_t last_call_ = 0;
  std::string trouble_;
};

}  // namespace tessera::gateway
