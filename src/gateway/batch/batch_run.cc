// SPDX-License-Identifier: Apache-2.0
#include "gateway/batch/batch_run.h"

#include <fmt/format.h>

#include <chrono>

namespace tessera::gateway {
namespace {

constexpr Duration kWaitPause = std::chrono::milliseconds(500);
constexpr Duration kFirstPause = std::chrono::milliseconds(250);  // Doubled by each failure.

}  // namespace

bool BatchRun::IsDone() const {
  return static_cast<size_t>(folder_->completed() + folder_->failed()) == folder_->rows();
}

std::optional<std::pair<size_t, uint64_t>> BatchRun::TakeRow(TimePoint now) {
  if (!paused_.empty() && paused_.begin()->first <= now) {
    const size_t row = paused_.begin()->second;
    paused_.erase(paused_.begin());
    return std::pair(row, ++last_call_);
  }
  while (next_ < folder_->rows() && folder_->IsDone(next_)) ++next_;
  if (next_ == folder_->rows()) return std::nullopt;
  return std::pair(next_++, ++last_call_);
}

void BatchRun::NoteCall(size_t row, uint64_t call, CancelForward cancel) {
  calls_[row] = {call, std::move(cancel)};
}

void BatchRun::FailRow(size_t row, std::string error) {
  unwritten_.push_back({.row = row, .error = std::move(error)});
}

void BatchRun::Settle(const RowOutcome& outcome, RowVerdict verdict, TimePoint now) {
  const auto call = calls_.find(outcome.row);
  if (call == calls_.end() || call->second.number != outcome.call) return;
  calls_.erase(call);
  switch (verdict.kind) {
    case RowVerdict::Kind::kDone:
      unwritten_.push_back(std::move(verdict.result));
      failures_.erase(outcome.row);
      trouble_.clear();
      return;
    case RowVerdict::Kind::kWait:
      trouble_ = std::move(verdict.why);
      paused_.emplace(now + kWaitPause, outcome.row);
      return;
    case RowVerdict::Kind::kTryAgain: {
      trouble_ = std::move(verdict.why);
      const int failures = ++failures_[outcome.row];
      if (failures < kRowAttemptsMax) {
        paused_.emplace(now + kFirstPause * (1 << failures), outcome.row);
        return;
      }
      FailRow(outcome.row, fmt::format("{} tries: {}", failures, trouble_));
      failures_.erase(outcome.row);
      return;
    }
  }
}

Status BatchRun::WriteDown() {
  while (!unwritten_.empty()) {
    TESSERA_RETURN_IF_ERROR(folder_->Append(unwritten_.front()));
    unwritten_.pop_front();
  }
  return {};
}

void BatchRun::CancelCalls() {
  // Their outcomes find no call any more.
  const auto calls = std::exchange(calls_, {});
  for (const auto& [row, call] : calls) {
    if (call.cancel) call.cancel();
    paused_.emplace(TimePoint::min(), row);
  }
}

}  // namespace tessera::gateway
