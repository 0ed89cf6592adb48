// SPDX-License-Identifier: Apache-2.0
//
// One row of a batch as a call to a worker, and what its answer means. Answers come on threads of
// the upstream client; RowInbox carries them to the thread that runs batches. Thread-safe.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "gateway/api/context.h"
#include "gateway/batch/batch_folder.h"
#include "gateway/batch/batch_record.h"
#include "gateway/batch/batch_rows.h"
#include "gateway/forward/forward.h"

namespace tessera::gateway {

/// How a row's call ended.
struct RowOutcome {
  std::string batch_id{};
  size_t row = 0;
  uint64_t call = 0;    // Which call of the row.
  Status status{};      // Of the forwarding.
  int http_status = 0;  // 0: no answer.
  std::string body{};
  bool is_too_large = false;
};

class RowInbox {
 public:
  void Put(RowOutcome outcome);
  /// Ends a Take that waits, or the next.
  void Wake();
  /// What has come; waits for it, or for Wake, or so long.
  std::vector<RowOutcome> Take(Duration patience);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RowOutcome> outcomes_;
  bool is_woken_ = false;
};

/// Sends the row to a worker of `route`; its outcome comes to `inbox`, kCancelled for
/// a call that was cancelled.
CancelForward StartRow(const Context& context, const std::shared_ptr<Route>& route,
                       const BatchRow& row, const BatchRecord& batch, RowOutcome outcome,
                       std::shared_ptr<RowInbox> inbox);

/// What an outcome means.
struct RowVerdict {
  enum class Kind : uint8_t {
    kDone,      // `result`.
    kTryAgain,  // The worker failed; `why`.
    kWait,      // No worker could take it yet; that is no failure of the row.
  };
  Kind kind = Kind::kDone;
  RowResult result{};
  std::string why{};
};
RowVerdict JudgeRow(const RowOutcome& outcome, const BatchRecord& batch);

}  // namespace tessera::gateway
